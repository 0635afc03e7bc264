"""Metrics of a DAG run by Airflow itself, as a StatsD server receives them."""

import json
from pathlib import Path

import pytest

from tests.e2e.dag_run import TREE, dag_run
from tests.support.statsd import StatsdServer

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

OF = "lance_conn_id=folder,table=t"


def test_waits_polls_and_writes_of_a_run_are_counted_once(
    airflow_home: dict[str, str], tmp_path: Path
) -> None:
    folder = {"conn_type": "lance", "extra": {"root": str(tmp_path / "lake")}}
    with StatsdServer.running() as statsd:
        environment = {**airflow_home, **statsd.environment, "AIRFLOW_CONN_FOLDER": json.dumps(folder)}
        with dag_run(TREE / "tests/e2e/dags/metered.py", {"lance_conn_id": "folder"}, environment) as run:
            states = {name: task["state"] for name, task in run.result().items()}
        lines = statsd.received()

    written = f"{OF},operation=append"
    counted = [
        line for line in lines if line.endswith("|c") and ".poll." not in line and ".listing." not in line
    ]
    size = next(line for line in counted if line.startswith("lance.bytes.written"))
    assert states == {**dict.fromkeys(states, "success"), "late": "skipped"}, run.log
    assert sorted(counted) == [
        size,
        f"lance.commit.made,{written}:1|c",
        f"lance.commit.made,{OF},operation=delete:1|c",
        f"lance.files.written,{written}:1|c",
        f"lance.operation.done,{written}:1|c",
        f"lance.operation.done,{OF},operation=delete:1|c",
        f"lance.operation.skipped,{written}:1|c",
        f"lance.operation.unchanged,{OF},operation=maintain:1|c",
        f"lance.rows.deleted,{OF},operation=delete:1|c",
        f"lance.rows.inserted,{written}:3|c",
        f"lance.wait.succeeded,{OF}:1|c",
        f"lance.wait.timed_out,{OF}:1|c",
    ]
    # Those of the deferred wait, in the triggerer's part.
    assert "lance.poll.succeeded,lance_conn_id=folder:1|c" in lines
    assert "lance.poll.waits,lance_conn_id=folder:1|g" in lines
    timed = {line.partition(",")[0] for line in lines if line.endswith("|ms")}
    assert timed == {f"lance.{name}.duration" for name in ("commit", "operation", "wait", "poll", "listing")}
