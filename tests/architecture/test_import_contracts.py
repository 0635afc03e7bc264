"""Import contracts between packages: those of import-linter in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_imports_point_one_way(root: Path) -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run([lint_imports, "--no-cache"], cwd=root, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["airflow_provider_lancens", "example_dags", "quickstart"])
def test_no_name_is_imported_from_the_compatibility_provider(root: Path, folder: str) -> None:
    """Each Airflow pins another version of it, and that of Airflow 3.1.0 has none of the names."""
    text = {file: file.read_text() for file in (root / folder).rglob("*.py")}

    assert [file for file, code in text.items() if "airflow.providers.common.compat" in code] == []
