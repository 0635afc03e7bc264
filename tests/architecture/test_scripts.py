"""The system packages that the scripts install."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ASK = '. scripts/_environment && . scripts/_needs && needs_of_arguments "$@"'


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        ("tests/unit", set()),
        ("-n 0 tests/unit/spark ./tests/architecture/test_pages.py::test_x -k foo", set()),
        ("tests/integration/spark", {"java", "mvn"}),
        ("tests/e2e/running/test_forms.py tests/unit", {"java", "mvn", "chromium", "libatomic.so.1"}),
    ],
)
def test_only_dependencies_of_the_selected_tests_are_installed(
    root: Path, arguments: str, needs: set[str]
) -> None:
    assert asked_for(root, *arguments.split()) == needs


@pytest.mark.parametrize("arguments", ["", "-m long", "tests", "tests/e2e"])
def test_a_run_without_a_path_needs_all_dependencies(root: Path, arguments: str) -> None:
    asked = asked_for(root, *arguments.split())
    assert asked > {"mvn", "chromium", "libatomic.so.1", "krb5kdc", "krb5-config"}


def asked_for(root: Path, *arguments: str) -> set[str]:
    command = ["bash", "-c", ASK, "test", *arguments]
    return set(subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split())
