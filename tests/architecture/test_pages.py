"""What the pages show runs somewhere, and what they say can be met."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

QUOTE = re.compile(r"```\{literalinclude\} (\S+)\n((?::.*\n)*)```")
MARKER = re.compile(r'^:(?:start-after|end-before): "(.*)"$', re.MULTILINE)


@pytest.fixture(scope="module")
def pages(root: Path) -> dict[str, str]:
    return {page.name: page.read_text() for page in sorted((root / "docs").glob("*.md"))}


def test_no_page_has_a_task_of_its_own_that_no_test_runs(pages: dict[str, str]) -> None:
    assert [name for name, text in pages.items() if "task_id=" in text] == []


def test_every_example_is_quoted_with_all_its_marked_parts(pages: dict[str, str], root: Path) -> None:
    quoted = [quote for text in pages.values() for quote in QUOTE.findall(text)]
    used = {(Path(file).name, marker) for file, options in quoted for marker in MARKER.findall(options)}
    examples = sorted((root / "example_dags").glob("*.py"))
    marked = {
        (example.name, marker)
        for example in examples
        for marker in re.findall(r"\[(?:START|END) \w+\]", example.read_text())
    }
    assert marked == {one for one in used if one[0] in {example.name for example in examples}}
