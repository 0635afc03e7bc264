"""The example DAG in a running Airflow: scheduler, triggerer, DAG processor and API server.

Every change runs the same with a few rows, in `running/test_ingestion.py`.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from quickstart.servers import AirflowServers
from tests.e2e.flights import expected
from tests.support.flights import Pipeline

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

FLIGHTS, WATCHER, REPORT = "lance_flights", "lance_new_flights", "lance_worst_delays"


class Api:
    """Requests to the API that Airflow's UI makes."""

    def __init__(self, servers: AirflowServers) -> None:
        self._servers = servers

    def trigger_run(self, dag_id: str) -> str:
        """Trigger a run, which also unpauses the DAG, and return its id."""
        self._servers.unpause(dag_id)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        body = {"logical_date": now, "conf": {}}
        return str(self._servers.send("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def run(self, dag_id: str, run_id: str) -> str:
        return str(self._get(dag_id, run_id)["state"])

    def newest_run(self, dag_id: str) -> dict[str, Any]:
        """The newest run of a DAG; empty if there is none."""
        runs = self._servers.get(f"/api/v2/dags/{dag_id}/dagRuns?order_by=-id&limit=1")["dag_runs"]
        return runs[0] if runs else {}

    def task(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        return self._get(dag_id, run_id, f"/taskInstances/{task_id}")

    def xcom(self, dag_id: str, run_id: str, task_id: str) -> Any:
        entry = self._get(dag_id, run_id, f"/taskInstances/{task_id}/xcomEntries/return_value")
        return entry["value"] if isinstance(entry["value"], dict) else json.loads(entry["value"])

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        return json.dumps(self._get(dag_id, run_id, f"/taskInstances/{task_id}/logs/1"))

    def _get(self, dag_id: str, run_id: str, more: str = "") -> dict[str, Any]:
        return self._servers.get(f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}{more}")


@pytest.fixture
def api(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    for name, value in pipeline.environment.items():
        monkeypatch.setenv(name, value)
    with AirflowServers(pipeline.home) as servers:
        servers.wait_until_ready()
        yield Api(servers)


def until(true: Callable[[], bool], seconds: float = 800) -> None:
    """Repeat until the condition holds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_a_month_triggered_in_the_ui_is_seen_by_a_deferred_sensor(pipeline: Pipeline, api: Api) -> None:
    before = pipeline.table("flights")["month"].nunique()  # another test may have added a month
    watching = api.trigger_run(WATCHER)
    until(lambda: api.task(WATCHER, watching, "wait_for_flights").get("state") == "deferred")
    until(lambda: api.task(WATCHER, watching, "wait_for_flights")["triggerer_job"] is not None)

    run_id = api.trigger_run(FLIGHTS)
    until(lambda: api.run(FLIGHTS, run_id) in ("success", "failed"))
    until(lambda: api.run(WATCHER, watching) in ("success", "failed"))

    assert api.run(FLIGHTS, run_id) == api.run(WATCHER, watching) == "success"
    seen = api.xcom(WATCHER, watching, "wait_for_flights")
    assert seen["version"] > seen["previous_version"]
    months = expected.flights().groupby("month").size()
    came = api.xcom(WATCHER, watching, "what_came")
    assert came.items() <= {f"2013-{month:02d}": rows for month, rows in months.items()}.items()
    assert came
    ingested = pipeline.table("flights").groupby("month").size()
    assert ingested.to_dict() == months[ingested.index].to_dict()
    assert len(ingested) == before + 1, "one press ingests one month"

    until(lambda: api.newest_run(REPORT).get("state") in ("success", "failed"))
    report = api.newest_run(REPORT)
    assert (report["state"], report["run_type"]) == ("success", "asset_triggered")


def test_runs_of_the_quickstart_have_their_logs_in_the_ui(pipeline: Pipeline, api: Api) -> None:
    run_id = pipeline.run_id("2013-01")

    log = api.log(FLIGHTS, run_id, "ingest_flights")

    assert "table nyc$flights: committed version 1 with 27,004 rows" in log
    assert "not found" not in log
