"""The example DAGs on the age of a table's data, run by Airflow itself."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_lancens import LanceCatalog, connect
from tests.e2e.dag_run import TREE, dag_run

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

EXAMPLES = TREE / "example_dags"


@pytest.fixture
def environment(airflow_home: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Airflow's, with the tables in a folder."""
    return {
        **airflow_home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW_CONN_LAKE": json.dumps({"conn_type": "lance", "extra": {"root": str(tmp_path / "lake")}}),
        "PYTHONPATH": os.pathsep.join([str(EXAMPLES / "plugins"), str(TREE)]),
        "LANCE_EXAMPLE_POLL": "0.2",
    }


@pytest.fixture
def lake(tmp_path: Path) -> LanceCatalog:
    """The tables ``sales.orders`` and ``sales.customers``, which have just got data."""
    opened = connect("dir", {"root": str(tmp_path / "lake")})
    opened.create_namespace("sales")
    for name in ("sales.orders", "sales.customers"):
        opened.declare_table(name).append(pa.table({"id": [1]}))
    return opened


@pytest.mark.usefixtures("lake")
def test_a_task_fails_if_data_are_late(environment: dict[str, str]) -> None:
    for seconds, state in (("3600", "success"), ("1", "failed")):
        with dag_run(
            EXAMPLES / "freshness_check.py", {}, {**environment, "LANCE_EXAMPLE_MAX_AGE": seconds}
        ) as run:
            assert run.result()["check"]["state"] == state, run.log
    assert "the newest data are " in run.log
    assert "expected every 1 second" in run.log


def test_a_wait_without_new_data_times_out_and_tells_it(
    environment: dict[str, str], lake: LanceCatalog
) -> None:
    opened = lake.declare_table("sales.later")
    assert opened.version is None
    settings = {**environment, "LANCE_EXAMPLE_MAX_AGE": "0.5"}
    with dag_run(EXAMPLES / "freshness.py", {}, settings) as run:
        found = run.result()["wait_for_new_data"]
    assert found["xcom"]["version"] == 1, run.log  # any version, in the first run

    with dag_run(EXAMPLES / "freshness.py", {}, settings) as run:
        assert run.result()["wait_for_new_data"]["state"] == "failed", run.log
    assert "sales.orders has no new data: Sensor has timed out after 2 seconds" in run.log
