"""The documentation: its examples are tested, and the messages that it quotes exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.hooks.airflow_errors import _TRANSIENT_CODES

QUOTE = re.compile(r"```\{literalinclude\} (\S+)\n((?::.*\n)*)```")
MARKER = re.compile(r'^:(?:start-after|end-before): "(.*)"$', re.MULTILINE)
MESSAGE = re.compile(r"`([^`]+)`")
CODE = re.compile(r"\(code (\d+), (\w+)\)")
OTHERS = {
    "You must specify a region",
    "Commit result for version 3 is unknown",
    'No FileSystem for scheme "s3"',
    "Index referenced a field with id 1 which did not exist in the schema",
    "Unknown response: Plan observed(__python_accumulator__",
    "finished with state success, but the task instance's state attribute is running",
}
"""Messages that a library says and ours hand on."""
BETWEEN = re.compile(r"'[^' ]*'|\b\d+\b|\w+://\S+|client\.[\w.-]+(?:=\w+)?|…|=|: ")
"""What differs from message to message, or joins the parts that messages are made of."""


@pytest.fixture(scope="module")
def pages(root: Path) -> dict[str, str]:
    return {page.name: page.read_text() for page in sorted((root / "docs").glob("*.md"))}


def test_every_page_is_in_the_table_of_contents_once(pages: dict[str, str]) -> None:
    entries = re.findall(r"```\{toctree\}\n(?::.*\n)+\n((?:[\w-]+\n)+)```", pages["index.md"])
    listed = [f"{name}.md" for name in "".join(entries).split()]
    assert sorted(listed) == sorted(pages.keys() - {"index.md"})


def test_every_task_shown_in_a_page_is_part_of_a_tested_example(pages: dict[str, str]) -> None:
    assert [name for name, text in pages.items() if "task_id=" in text] == []


def test_the_python_of_every_page_is_run_by_a_test(pages: dict[str, str], root: Path) -> None:
    showing = {name.removesuffix(".md") for name, text in pages.items() if "\n```python\n" in text}
    tests = [file.read_text() for file in (root / "tests").rglob("test_*.py")]
    run = {page for test in tests for page in re.findall(r'run_blocks\(\s*"([\w-]+)"', test)}
    assert showing - run == {"test-your-dags"}  # which test_tested_dag.py gives to pytest


def test_every_marked_part_of_an_example_is_quoted(pages: dict[str, str], root: Path) -> None:
    quoted = [quote for text in pages.values() for quote in QUOTE.findall(text)]
    used = {(Path(file).name, marker) for file, options in quoted for marker in MARKER.findall(options)}
    examples = sorted((root / "example_dags").rglob("*.py"))
    marked = {
        (example.name, marker)
        for example in examples
        for marker in re.findall(r"\[(?:START|END) \w+\]", example.read_text())
    }
    assert marked == {one for one in used if one[0] in {example.name for example in examples}}


def test_the_dag_in_the_readme_is_part_of_an_example(root: Path) -> None:
    shown = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    examples = [dedented(file.read_text()) for file in (root / "example_dags").glob("*.py")]
    assert shown
    assert all(any(dedented(block) in example for example in examples) for block in shown)


def dedented(code: str) -> str:
    """The code without indentation, as in a page."""
    return "\n".join(line.strip() for line in code.strip().splitlines())


@pytest.fixture(scope="module")
def strings(root: Path) -> str:
    """Every string in the package's code, with its formatted values replaced by a separator."""
    trees = [ast.parse(file.read_text()) for file in (root / "airflow_provider_lancens").rglob("*.py")]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return "\0".join(text for text in constants if isinstance(text, str))


def messages(page: str) -> list[str]:
    """The messages that the first column of a page's tables quotes."""
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    return [message for row in rows for message in MESSAGE.findall(row)]


def test_every_message_quoted_in_troubleshooting_exists(pages: dict[str, str], strings: str) -> None:
    quoted = [one for one in messages(pages["troubleshooting.md"]) if one not in OTHERS]
    texts = [one for one in quoted if not CODE.fullmatch(one)]
    pieces = {one: [part.strip() for part in BETWEEN.split(one)] for one in texts}
    assert len(texts) > 40
    assert {one: parts for one, parts in pieces.items() if not all(part in strings for part in parts)} == {}


def test_every_error_code_in_troubleshooting_has_its_right_name(pages: dict[str, str]) -> None:
    codes = CODE.findall(pages["troubleshooting.md"])
    assert codes
    assert codes == [(number, ErrorCode(int(number)).name) for number, _ in codes]


def test_every_test_named_on_the_security_page_exists(pages: dict[str, str], root: Path) -> None:
    page = pages["security.md"]
    named = set(re.findall(r"`(test_\w+\.py)`", page))
    assert len(named) > 20
    assert not named - {path.name for path in (root / "tests").rglob("test_*.py")}
    rows = [
        line.split("|")[1:-1] for line in page.partition("| Who |")[2].partition("\n\n")[0].splitlines()[2:]
    ]
    assert {len(cells) for cells in rows} == {4}
    assert [who for who, _, cannot, shown in rows if cannot.strip() and "test_" not in shown] == []


def test_every_error_code_has_a_section_that_says_what_becomes_of_the_task(pages: dict[str, str]) -> None:
    parts = re.split(r"^\(code-(\d+)\)=\n\n## Code \d+: (.*)\n", pages["codes.md"], flags=re.MULTILINE)
    sections = {
        int(number): (name, " ".join(text.split()))
        for number, name, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    }

    assert list(sections) == [code.value for code in ErrorCode]
    named = {code: set(ErrorCode(code).name.lower().split("_")) for code in sections}
    assert [code for code, (name, _) in sections.items() if not set(name.split()) <= named[code]] == []
    retried = {code for code, (_, text) in sections.items() if "fails and is retried" in text}
    assert retried == _TRANSIENT_CODES
    failing = {code for code, (_, text) in sections.items() if "without retries" in text}
    by_no_operator = {code for code, (_, text) in sections.items() if re.search("(?i)no operator", text)}
    assert failing | by_no_operator == set(sections) - retried
