"""The example DAG in a running Airflow: scheduler, triggerer, DAG processor and API server.

Every change runs the same with a few rows, in `running/test_ingestion.py`.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from quickstart.servers import AirflowServers
from tests.e2e.flights import expected
from tests.e2e.flights.conftest import Pipeline

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

FLIGHTS, WATCHER = "lance_flights", "lance_new_flights"


class Api:
    """Requests to the API that Airflow's UI makes."""

    def __init__(self, servers: AirflowServers) -> None:
        self._servers = servers
        self._token = servers.ask("/auth/token")["access_token"]

    def trigger_run(self, dag_id: str) -> str:
        """Trigger a run, which also unpauses the DAG, and return its id."""
        self._send("PATCH", f"/api/v2/dags/{dag_id}?update_mask=is_paused", {"is_paused": False})
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        run = self._send("POST", f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": now, "conf": {}})
        return str(run["dag_run_id"])

    def run(self, dag_id: str, run_id: str) -> str:
        return str(self._get(dag_id, run_id)["state"])

    def task(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        return self._get(dag_id, run_id, f"/taskInstances/{task_id}")

    def xcom(self, dag_id: str, run_id: str, task_id: str) -> Any:
        entry = self._get(dag_id, run_id, f"/taskInstances/{task_id}/xcomEntries/return_value")
        return entry["value"] if isinstance(entry["value"], dict) else json.loads(entry["value"])

    def _get(self, dag_id: str, run_id: str, more: str = "") -> dict[str, Any]:
        return self._servers.ask(f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}{more}", self._token)

    def _send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = Request(self._servers.url + path, json.dumps(body).encode(), headers, method=method)
        with build_opener(ProxyHandler({})).open(request) as answer:
            result: dict[str, Any] = json.load(answer)
            return result


@pytest.fixture
def api(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    for name, value in pipeline.home.environment(pipeline.metastore).items():
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
    # Catch-up has started too, so that several runs ingest months concurrently: each month exists once.
    ingested = pipeline.table("flights").groupby("month").size()
    assert ingested.to_dict() == months[ingested.index].to_dict()
