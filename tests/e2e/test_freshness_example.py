"""The example DAG that looks at the age of a table's data, run by Airflow itself."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_lancens import connect
from tests.e2e.dag_run import TREE, dag_run

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

EXAMPLES = TREE / "example_dags"


@pytest.fixture
def environment(airflow_home: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Airflow's, with two tables in a folder, which have just got data."""
    lake = connect("dir", {"root": str(tmp_path / "lake")})
    lake.create_namespace("sales")
    for name in ("sales.orders", "sales.customers"):
        lake.declare_table(name).append(pa.table({"id": [1]}))
    return {
        **airflow_home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW_CONN_LAKE": json.dumps({"conn_type": "lance", "extra": {"root": str(tmp_path / "lake")}}),
    }


def test_a_task_fails_if_data_are_late(environment: dict[str, str]) -> None:
    for seconds, state in (("3600", "success"), ("1", "failed")):
        settings = {**environment, "LANCE_EXAMPLE_MAX_AGE": seconds}
        with dag_run(EXAMPLES / "freshness_check.py", {}, settings) as run:
            assert run.result()["check"]["state"] == state, run.log
    assert "the newest data are " in run.log
    assert "expected every 1 second" in run.log
