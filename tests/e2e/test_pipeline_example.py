"""The example DAG that runs a declarative pipeline: what the pipeline adds, the next tasks read."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from tests.e2e.dag_run import TREE, dag_run
from tests.pyspark_versions import has_pipelines

pytestmark = [pytest.mark.long, has_pipelines]

EXAMPLES = TREE / "example_dags"


@pytest.fixture
def dags(tmp_path: Path) -> Path:
    """A copy of the DAG and its pipeline, whose checkpoints are in the test's folder."""
    folder = tmp_path / "dags"
    shutil.copytree(EXAMPLES / "pipelines", folder / "pipelines")
    shutil.copy(EXAMPLES / "pipeline_readings.py", folder)
    spec = folder / "pipelines" / "readings" / "spark-pipeline.yml"
    text = spec.read_text()
    assert "/tmp/readings_pipeline" in text
    spec.write_text(text.replace("/tmp/readings_pipeline", str(tmp_path)))
    return folder


@pytest.fixture
def environment(
    metastore: MetastoreServer, airflow_home: dict[str, str], dags: Path, tmp_path: Path
) -> dict[str, str]:
    """An Airflow with this DAG and its connection."""
    lake = {"conn_type": "lance_hive2", "host": metastore.uri, "extra": {"root": str(tmp_path / "lake")}}
    return {
        **airflow_home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW_CONN_LAKE": json.dumps(lake),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),  # Spark's commands
    }


def test_the_next_tasks_read_what_the_pipeline_has_added(
    environment: dict[str, str], dags: Path, tmp_path: Path
) -> None:
    with dag_run(dags / "pipeline_readings.py", {"folder": str(tmp_path / "files")}, environment) as run:
        tasks = run.result()

    assert {name: task["state"] for name, task in tasks.items()} == dict.fromkeys(tasks, "success"), run.log
    changes, computed = tasks["changes"]["xcom"], tasks["compute"]["xcom"]
    assert (changes["previous_version"], changes["version"]) == (None, 1)
    assert (computed["inserted"], computed["version"]) == (1, 1)
    assert tasks["move"]["xcom"]["version"] == 1
