"""The example DAG with its own Airflow home and metastore, started like the quickstart."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quickstart.home import Home
from tests.e2e.dag_run import TREE
from tests.support.flights import Pipeline


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """The pipeline after the quickstart has ingested the first two months."""
    home = Home(tmp_path_factory.mktemp("flights") / "a home")
    started = subprocess.run(
        [sys.executable, "-m", "quickstart"],
        env={**os.environ, "LANCENS_HOME": str(home.folder)},
        cwd=TREE,
        capture_output=True,
        text=True,
    )
    assert started.returncode == 0, started.stdout + started.stderr
    with home.metastore() as metastore:
        yield Pipeline(home, metastore, started.stdout)
