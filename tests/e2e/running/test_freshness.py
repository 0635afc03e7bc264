"""The deadline of a run that waits for new data: its function is called, and the wait goes on."""

import re

import pytest

from tests.e2e.servers import RunningAirflow

DAG = "lance_freshness"
CALLED = """
    SELECT data, state FROM callback
    WHERE data LIKE '%freshness_alerts.tell%' AND state IN ('success', 'failed')
"""
RUN = re.compile(r'"dag_run_id": "([^"]+)"')

pytestmark = pytest.mark.thorough


def test_a_deadline_calls_its_function_and_the_wait_goes_on(airflow: RunningAirflow) -> None:
    airflow.unpause(DAG)
    try:
        [(data, state), *_] = airflow.until(lambda: airflow.rows(CALLED))
        run = str(RUN.findall(data)[0])
        airflow.until(lambda: airflow.ended(DAG, run))
    finally:
        airflow.send("PATCH", f"/api/v2/dags/{DAG}?update_mask=is_paused", {"is_paused": True})

    assert state == "success"
    assert '"sales.orders"' in data
    assert airflow.ended(DAG, run) == "failed"  # later, by its timeout
    log = airflow.task_log(DAG, run, "wait_for_new_data")
    assert any("Sensor has timed out after 20 seconds" in line for line in log)
    assert any(line.startswith("sales.orders has no new data: ") for line in log)  # by the callback
