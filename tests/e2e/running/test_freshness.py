"""The deadline of a run that waits for new data: its function is called, and the wait goes on."""

import pytest

from tests.e2e.servers import RunningAirflow
from tests.support.airflow_versions import AIRFLOW_V_3_2_PLUS

DAG = "lance_freshness"
CALLBACKS = (
    "SELECT data, state, dagrun_id FROM callback JOIN deadline ON callback_id = callback.id"
    if AIRFLOW_V_3_2_PLUS
    else "SELECT callback AS data, callback_state AS state, dagrun_id FROM deadline"
)
CALLED = f"""
    SELECT data, called.state, run_id FROM ({CALLBACKS}) AS called JOIN dag_run ON dag_run.id = dagrun_id
    WHERE data LIKE '%freshness_alerts.tell%' AND called.state IN ('success', 'failed')
"""

pytestmark = pytest.mark.thorough


def test_a_deadline_calls_its_function_and_the_wait_goes_on(airflow: RunningAirflow) -> None:
    airflow.unpause(DAG)
    try:
        [(data, state, run), *_] = airflow.until(lambda: airflow.rows(CALLED))
        airflow.until(lambda: airflow.ended(DAG, run))
    finally:
        airflow.send("PATCH", f"/api/v2/dags/{DAG}?update_mask=is_paused", {"is_paused": True})

    assert state == "success"
    assert '"sales.orders"' in data
    assert airflow.ended(DAG, run) == "failed"  # later, by its timeout
    log = airflow.task_log(DAG, run, "wait_for_new_data")
    assert any("Sensor has timed out after 20 seconds" in line for line in log)
    assert any(line.startswith("sales.orders has no new data: ") for line in log)  # by the callback
