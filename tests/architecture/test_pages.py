"""What the pages show runs somewhere, and what they say can be met."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode

QUOTE = re.compile(r"```\{literalinclude\} (\S+)\n((?::.*\n)*)```")
MARKER = re.compile(r'^:(?:start-after|end-before): "(.*)"$', re.MULTILINE)
MESSAGE = re.compile(r"`([^`]+)`")
CODE = re.compile(r"\(code (\d+), (\w+)\)")
OTHERS = {
    "You must specify a region",
    'No FileSystem for scheme "s3"',
    "finished with state success, but the task instance's state attribute is running",
}
"""Messages that a library says and ours hand on."""
BETWEEN = re.compile(r"'[^' ]*'|\b\d+\b|\w+://\S+|client\.[\w.-]+(?:=\w+)?|…|=|: ")
"""What differs from message to message, or joins the parts that messages are made of."""


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


def test_what_the_readme_shows_of_a_dag_is_part_of_an_example(root: Path) -> None:
    shown = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    examples = [dedented(file.read_text()) for file in (root / "example_dags").glob("*.py")]
    assert shown
    assert all(any(dedented(block) in example for example in examples) for block in shown)


def dedented(code: str) -> str:
    """The code without its margins, which a page leaves out."""
    return "\n".join(line.strip() for line in code.strip().splitlines())


@pytest.fixture(scope="module")
def words(root: Path) -> str:
    """Every text in the package's code; what stands between the parts of a text is a value."""
    trees = [ast.parse(file.read_text()) for file in (root / "airflow_provider_lancens").rglob("*.py")]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return "\0".join(text for text in constants if isinstance(text, str))


def messages(page: str) -> list[str]:
    """What the first column of a page's tables quotes."""
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    return [message for row in rows for message in MESSAGE.findall(row)]


def test_every_message_of_the_troubleshooting_can_be_met(pages: dict[str, str], words: str) -> None:
    told = [one for one in messages(pages["troubleshooting.md"]) if one not in OTHERS]
    spoken = [one for one in told if not CODE.fullmatch(one)]
    pieces = {one: [part.strip() for part in BETWEEN.split(one)] for one in spoken}
    assert len(spoken) > 40
    assert {one: parts for one, parts in pieces.items() if not all(part in words for part in parts)} == {}


def test_every_code_of_the_troubleshooting_is_called_so(pages: dict[str, str]) -> None:
    codes = CODE.findall(pages["troubleshooting.md"])
    assert codes
    assert codes == [(number, ErrorCode(int(number)).name) for number, _ in codes]
