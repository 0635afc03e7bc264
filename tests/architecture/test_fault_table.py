"""The table of faults and guarantees lists existing tests that `./scripts/test` runs for every change."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests import fault_table
from tests.fault_table import GUARANTEES, PAGE, ROOT, TABLE

ALL = list(fault_table.tests())


@cache
def functions(file: str) -> dict[str, bool]:
    """The tests of a file, and whether `./scripts/test` leaves out each."""
    tree = ast.parse(Path(ROOT, "tests", file).read_text())
    marks = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    none = any(_leaves_out(mark) for mark in marks)
    return {
        node.name: none
        or any(isinstance(one, ast.Attribute) and _leaves_out(one) for one in node.decorator_list)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def _leaves_out(mark: ast.expr) -> bool:
    return any(f"mark.{tier}" in ast.unparse(mark) for tier in ("thorough", "long"))


@pytest.mark.parametrize("test", ALL)
def test_every_listed_test_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert name in functions(file)


@pytest.mark.parametrize("fault", TABLE)
def test_every_guarantee_has_a_test_of_each_change_or_a_reason(fault: str) -> None:
    assert list(TABLE[fault]) == list(GUARANTEES)
    for guarantee, cell in TABLE[fault].items():
        if isinstance(cell, str):
            assert cell, guarantee
            continue
        left_out = [functions(file)[name] for file, _, name in (test.partition("::") for test in cell)]
        assert not all(left_out), f"{guarantee}: {cell}"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == fault_table.page(), "run ./scripts/fault-table"
