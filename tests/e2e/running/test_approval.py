"""A person decides in a running Airflow whether staged rows are published."""

import lance
import pytest

from tests.e2e.servers import RunningAirflow, run_path
from tests.support.running_lake import Lake

DAG = "lance_publish_after_approval"
WAITING = ("deferred", "awaiting_input")
"""The state of a task that waits for a person, before Airflow 3.3 and since."""

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("decision", "other"),
    [("publish", "discard"), ("discard", "publish")],
)
def test_staged_rows_are_published_or_discarded_as_decided(
    airflow: RunningAirflow, lake: Lake, decision: str, other: str
) -> None:
    run_id = airflow.trigger_run(DAG)
    airflow.until(lambda: airflow.task(DAG, run_id, "decide").get("state") in WAITING)
    airflow.until(lambda: airflow.ended_processes(run_id, "decide"))
    staged, before = airflow.xcom(DAG, run_id, "stage"), version(lake)

    _decide(airflow, run_id, decision.title())

    assert airflow.until(lambda: airflow.ended(DAG, run_id)) == "success"
    assert airflow.task(DAG, run_id, other)["state"] == "skipped"
    assert (staged["outcome"], staged["inserted"]) == ("staged", 100)
    assert version(lake) == (before + 1 if decision == "publish" else before)


def version(lake: Lake) -> int:
    return int(lance.dataset(namespace_client=lake.namespace, table_id=["catalog", "prices"]).version)


def _decide(airflow: RunningAirflow, run_id: str, option: str) -> None:
    question = f"{run_path(DAG, run_id)}/taskInstances/decide/-1/hitlDetails"
    airflow.send("PATCH", question, {"chosen_options": [option], "params_input": {}})
