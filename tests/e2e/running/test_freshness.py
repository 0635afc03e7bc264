"""The deadline of a run that waits for new data: its function is called, and the wait goes on."""

import json

import pytest

from tests.e2e.servers import RunningAirflow

DAG = "lance_freshness"
CALLED = """
    SELECT data, state FROM callback
    WHERE data LIKE '%freshness_alerts.tell%' AND state IN ('success', 'failed')
"""

pytestmark = pytest.mark.thorough


def test_a_deadline_calls_its_function_and_the_wait_goes_on(airflow: RunningAirflow) -> None:
    airflow.unpause(DAG)
    try:
        [(data, state), *_] = airflow.until(lambda: airflow.rows(CALLED))
        called = json.loads(data)["kwargs"]
        run = called["context"]["dag_run"]["dag_run_id"]
        airflow.until(lambda: airflow.ended(DAG, run))
    finally:
        airflow.send("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": True})

    assert (state, called["table"]) == ("success", "sales.orders")
    assert airflow.ended(DAG, run) == "failed"  # later, by its timeout
    log = airflow.task_log(DAG, run, "wait_for_new_data")
    assert any("Sensor has timed out after 20 seconds" in line for line in log)
    assert any(line.startswith("sales.orders has no new data: ") for line in log)  # by the callback
