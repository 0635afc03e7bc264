"""The test of a whole DAG on the page `docs/test-your-dags.md`, run by pytest as a reader runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.dag_run import TREE
from tests.support.page_code import python_blocks

EXAMPLES = TREE / "example_dags"

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


def test_a_whole_dag_is_tested_as_the_page_shows(airflow_home: dict[str, str], tmp_path: Path) -> None:
    (shown,) = python_blocks("test-your-dags")
    (tmp_path / "test_daily_readings.py").write_text(shown)
    settings = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "PYTHONPATH": f"{EXAMPLES}{os.pathsep}{TREE}",
    }

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env={**airflow_home, **settings},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
