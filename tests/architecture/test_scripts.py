"""The system packages that the scripts install, and what a release is refused for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ASK = '. scripts/_environment && . scripts/_needs && needs_of_arguments "$@"'


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        ("tests/unit", set()),
        ("-n 0 tests/unit/spark ./tests/architecture/test_pages.py::test_x -k foo", set()),
        ("tests/integration/spark/write", {"java", "mvn"}),
        ("tests/e2e/running/test_forms.py tests/unit", {"java", "mvn", "chromium", "libatomic.so.1"}),
    ],
)
def test_only_dependencies_of_the_selected_tests_are_installed(
    root: Path, arguments: str, needs: set[str]
) -> None:
    assert asked_for(root, *arguments.split()) == needs


@pytest.mark.parametrize(
    "path", ["tests/integration/hive", "tests/integration/spark", "tests/integration/spark/session"]
)
def test_tests_of_kerberos_need_its_servers_and_no_browser(root: Path, path: str) -> None:
    asked = asked_for(root, path)
    assert asked > {"java", "mvn", "krb5kdc", "krb5-config"}
    assert "chromium" not in asked


@pytest.mark.parametrize("arguments", ["", "-m long", "tests", "tests/e2e"])
def test_a_run_without_a_path_needs_all_dependencies(root: Path, arguments: str) -> None:
    asked = asked_for(root, *arguments.split())
    assert asked > {"mvn", "chromium", "libatomic.so.1", "krb5kdc", "krb5-config"}


def asked_for(root: Path, *arguments: str) -> set[str]:
    command = ["bash", "-c", ASK, "test", *arguments]
    return set(subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split())


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """A clone of this tree, without an environment."""
    if not (root / ".git").exists():
        pytest.skip("not a clone itself")
    subprocess.run(["git", "clone", "--quiet", "--shared", root, tmp_path / "clone"], check=True)
    return tmp_path / "clone"


def test_a_release_is_refused_while_the_tree_has_changes(clone: Path) -> None:
    (clone / "notes.txt").write_text("not committed")

    refused = subprocess.run([clone / "scripts/release"], capture_output=True, text=True, check=False)

    assert refused.returncode == 1
    assert "notes.txt" in refused.stderr
    assert not (clone / ".venv").exists()


def test_ci_runs_the_thorough_tests_even_if_others_failed(root: Path, tmp_path: Path) -> None:
    for folder in (".ci", "scripts"):
        (tmp_path / folder).mkdir()
    shutil.copy(root / ".ci/run", tmp_path / ".ci/run")
    test = tmp_path / "scripts/test"
    test.write_text('#!/bin/sh\necho "tests $*"\ntest "$*" = --thorough\n')
    test.chmod(0o755)

    run = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=False)

    assert run.stdout.splitlines() == ["tests ", "tests --thorough"]
    assert run.returncode == 1
