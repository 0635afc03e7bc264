"""The example DAG that looks at the age of a table's data, run by Airflow itself."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_lancens import connect
from tests.e2e.dag_run import TREE, DagRunner

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

EXAMPLE = TREE / "example_dags" / "freshness_check.py"


@pytest.fixture
def runner(airflow_home: dict[str, str], tmp_path: Path) -> Iterator[DagRunner]:
    """A process that runs examples, connected to a folder with two tables that have just got data."""
    lake = connect("dir", {"root": str(tmp_path / "lake")})
    lake.create_namespace("sales")
    for name in ("sales.orders", "sales.customers"):
        lake.declare_table(name).append(pa.table({"id": [1]}))
    environment = {
        **airflow_home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLE.parent),
        "AIRFLOW_CONN_LAKE": json.dumps({"conn_type": "lance", "extra": {"root": str(tmp_path / "lake")}}),
    }
    started = DagRunner(environment)
    yield started
    started.stop()


def test_a_task_fails_if_data_are_late(runner: DagRunner) -> None:
    for seconds, state in (("3600", "success"), ("1", "failed")):
        run = runner.start(EXAMPLE, {}, {"LANCE_EXAMPLE_MAX_AGE": seconds})
        assert run.result()["check"]["state"] == state, run.log
    assert "the newest data are " in run.log
    assert "expected every 1 second" in run.log
