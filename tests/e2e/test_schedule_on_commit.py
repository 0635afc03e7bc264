"""A DAG that runs on a commit, under a real scheduler, triggerer and API server, through a restart of all."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore
from quickstart.home import Home
from quickstart.servers import AirflowServers
from tests.integration.airflow.tables import Table

DAG = "lance_schedule_on_commit"
EXAMPLE = Path(__file__).parents[2] / "example_dags" / "schedule_on_commit.py"
POLL_SECONDS = 2
PATIENCE = 300

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Airflow:
    """Running servers, asked for what the DAG did."""

    def __init__(self, servers: AirflowServers) -> None:
        self._servers = servers

    def handled(self, count: int) -> list[tuple[int | None, int]]:
        """What the runs handled, in their order, once there are so many: previous version and version."""
        deadline = time.monotonic() + PATIENCE
        while len(found := self._handled()) < count:
            self._servers.check()
            assert time.monotonic() < deadline, f"after {PATIENCE} s: {found}"
            time.sleep(1)
        return found

    def _handled(self) -> list[tuple[int | None, int]]:
        runs = self._ask("dagRuns?order_by=run_after").get("dag_runs", [])
        values = [self._value(run["dag_run_id"]) for run in runs if run["state"] == "success"]
        return [(value["previous_version"], value["version"]) for value in values if value]

    def _value(self, run: str) -> dict[str, Any] | None:
        entry = self._ask(f"dagRuns/{run}/taskInstances/handle/xcomEntries/return_value?deserialize=true")
        value: Any = entry.get("value")
        return json.loads(value) if isinstance(value, str) else value

    def _ask(self, path: str) -> dict[str, Any]:
        token = self._servers.ask("/auth/token").get("access_token", "")
        return self._servers.ask(f"/api/v2/dags/{DAG}/{path}", token)


@pytest.fixture
def watched(metastore: EmbeddedMetastore, tmp_path: Path, table: Table, lake: str) -> Table:
    """The table that the example watches, declared."""
    table.declare()
    return table


@pytest.fixture
def airflow(
    tmp_path: Path, watched: Table, lake: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Any]]:
    """Start all servers of one Airflow home; again, on the same home, for a restart."""
    home = Home(tmp_path / "home")
    dags = tmp_path / "dags"
    dags.mkdir()
    shutil.copy(EXAMPLE, dags)
    settings = {
        "AIRFLOW_HOME": str(home.airflow),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "LANCE_EXAMPLE_CONNECTION": lake,
        "LANCE_EXAMPLE_TABLE": str(watched),
        "LANCE_EXAMPLE_POLL": str(POLL_SECONDS),
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    home.migrate()

    @contextmanager
    def running() -> Iterator[Airflow]:
        with AirflowServers(home) as servers:
            yield Airflow(servers)

    yield running
    if os.environ.get("LANCENS_KEEP_LOGS"):
        shutil.copytree(home.logs, os.environ["LANCENS_KEEP_LOGS"], dirs_exist_ok=True)


def test_a_watched_table_is_followed_through_a_restart_without_a_gap(
    airflow: Callable[[], Any], watched: Table
) -> None:
    assert watched.advance() == 1
    with airflow() as running:
        assert running.handled(1) == [(None, 1)]
        assert watched.advance() == 2
        assert running.handled(2) == [(None, 1), (1, 2)]
    for _ in range(3):
        watched.advance()
    with airflow() as running:
        assert running.handled(3) == [(None, 1), (1, 2), (2, 5)]
