"""The code that a page shows in its own text."""

import re

from tests.support.repository import ROOT


def python_blocks(page: str) -> list[str]:
    """The blocks of Python of a page such as ``vacuum``, in their order."""
    return re.findall(
        r"^```python\n(.*?)^```$", (ROOT / f"docs/{page}.md").read_text(), re.MULTILINE | re.DOTALL
    )


def run_blocks(page: str, **names: object) -> dict[str, object]:
    """Run a page's blocks one after the other, and return the names that they have then."""
    for number, block in enumerate(python_blocks(page)):
        exec(compile(block, f"docs/{page}.md, block {number}", "exec"), names)
    return names
