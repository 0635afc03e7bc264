"""The example DAG without a metastore, run by Airflow itself: its tables are in a folder."""

import json
from pathlib import Path

import pytest

from tests.e2e.dag_run import TREE, dag_run

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

EXAMPLES = TREE / "example_dags"


def test_a_day_is_loaded_awaited_and_read_without_a_metastore(
    airflow_home: dict[str, str], tmp_path: Path
) -> None:
    folder = {"conn_type": "lance", "extra": {"root": str(tmp_path / "lake")}}
    environment = {
        **airflow_home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "AIRFLOW_CONN_FOLDER": json.dumps(folder),
    }

    with dag_run(EXAMPLES / "lake_in_a_folder.py", {}, environment) as run:
        tasks = run.result()

    assert {name: task["state"] for name, task in tasks.items()} == dict.fromkeys(tasks, "success"), run.log
    assert tasks["ingest"]["xcom"]["inserted"] == 24
    assert tasks["wait"]["xcom"]["version"] == tasks["ingest"]["xcom"]["version"] == 1
    assert tasks["warmest"]["xcom"] == 21
    assert Path(tasks["declare"]["xcom"]["location"]).is_relative_to(tmp_path / "lake")
