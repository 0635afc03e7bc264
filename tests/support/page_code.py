"""The code that a page shows in its own text."""

import re
from collections.abc import Mapping

from tests.support.repository import ROOT


def python_blocks(page: str) -> list[str]:
    """The blocks of Python of a page such as ``vacuum``, in their order."""
    return re.findall(
        r"^```python\n(.*?)^```$", (ROOT / f"docs/{page}.md").read_text(), re.MULTILINE | re.DOTALL
    )


def run_blocks(page: str, replaced: Mapping[str, str] | None = None, **names: object) -> dict[str, object]:
    """Run a page's blocks one after the other, and return the names that they have then.

    Args:
        page: its name.
        replaced: text of the blocks, such as the location of a bucket, and what the test has instead.
        names: the names that the page takes for granted.
    """
    for number, block in enumerate(python_blocks(page)):
        for text, other in (replaced or {}).items():
            block = block.replace(text, other)
        exec(compile(block, f"docs/{page}.md, block {number}", "exec"), names)
    return names
