"""Where tests, what they share, and the points at which they inject faults are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SEVERAL_MODULES = {
    "namespace/storage/test_lesser_stores.py",
    "operators/test_arguments.py",
    "operators/test_rendered_arguments.py",
    "spark/commit/test_authority_in_every_order.py",
    "spark/commit/test_tables_that_others_write_to.py",
    "spark/commit/test_verbs_on_lesser_stores.py",
    "spark/keys/test_random_events.py",
    "spark/test_crafted_records.py",
    "spark/test_every_verb_on_lesser_stores.py",
    "spark/test_hostile_files.py",
}
"""Tests of several modules of a package."""
INJECTION_POINT = re.compile(r"^\| `(\w+\.\w+)` \|", re.MULTILINE)


@pytest.fixture(scope="module")
def trees(root: Path) -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text()) for file in sorted((root / "tests").rglob("*.py"))}


def test_unit_tests_are_named_after_the_module_that_they_test(root: Path) -> None:
    """`test_<module>.py`, `test_<module>_<subject>.py`, or a folder of the module's name."""
    misplaced = [str(file) for file in unit_tests(root) if not is_named_after_a_module(root, file)]

    assert sorted(misplaced) == sorted(SEVERAL_MODULES)


def test_no_test_imports_from_a_conftest_or_from_another_test(trees: dict[Path, ast.Module]) -> None:
    found = [
        f"{file.name}: {node.module}"
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and is_for_pytest_alone(node.module or "")
    ]

    assert found == []


def test_the_fault_injection_points_are_listed(root: Path, trees: dict[Path, ast.Module]) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Fault injection points")[2].partition("\n## ")[0]
    used = {point for tree in trees.values() for point in injection_points(tree)}

    assert used == set(INJECTION_POINT.findall(section))


def unit_tests(root: Path) -> Iterator[Path]:
    folder = root / "tests" / "unit"
    return (file.relative_to(folder) for file in folder.rglob("test_*.py"))


def is_named_after_a_module(root: Path, test: Path) -> bool:
    if (root / test.parent).is_dir() and test.parent.name:  # a folder beside the package, such as quickstart
        return True
    package = root / "airflow_provider_lancens" / test.parent
    if not package.is_dir():
        return package.with_suffix(".py").exists()
    name = test.stem.removeprefix("test_")
    modules = {module.stem for module in package.glob("*.py")}
    return any(name == module or name.startswith(f"{module}_") for module in modules)


def is_for_pytest_alone(module: str) -> bool:
    name = module.rpartition(".")[2]
    return module.startswith("tests.") and (name == "conftest" or name.startswith("test_"))


def injection_points(tree: ast.Module) -> Iterator[str]:
    """The owner and the name of each patched function of the package, as `Point` takes them."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("airflow_provider_lancens")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Point":
            owner, step = node.args[:2]
            if isinstance(owner, ast.Name) and owner.id in imported and isinstance(step, ast.Constant):
                yield f"{owner.id}.{step.value}"
