"""Unique names: no class name is used twice; twins, and an operator and what it calls, share file names."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

TWINS = {"hive", "glue"}
"""Packages and modules that implement the same thing for two kinds of metastore."""
NOT_NAMED_BY_US = {"__init__", "__main__"}


@pytest.fixture(scope="module")
def modules(root: Path) -> list[Path]:
    return sorted((root / "airflow_provider_lancens").rglob("*.py"))


def test_no_class_name_is_used_twice(modules: list[Path], root: Path) -> None:
    found = defaultdict(list)
    for module in modules:
        for name in classes(ast.parse(module.read_text())):
            found[name].append(str(module.relative_to(root)))

    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_only_twins_and_operators_share_file_names(modules: list[Path], root: Path) -> None:
    found = defaultdict(list)
    for module in modules:
        if module.stem not in NOT_NAMED_BY_US:
            found[module.stem].append(module)
    shared = {name: files for name, files in found.items() if len(files) > 1}

    assert {name: files for name, files in shared.items() if not are_twins(name, files)} == {}


def classes(tree: ast.AST) -> Iterator[str]:
    return (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def are_twins(name: str, files: list[Path]) -> bool:
    """Whether they are the Hive and the Glue variant of one thing, or an operator and what it calls."""
    folders = {file.parent.name for file in files}
    return name in TWINS or folders in (TWINS, {"operators", "spark"})
