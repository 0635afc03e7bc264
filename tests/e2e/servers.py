"""A running Airflow for tests: controlled by its API, inspected in its database, and disturbed."""

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from quickstart.children import Children
from quickstart.home import Home
from quickstart.servers import AirflowServers, free_port

PATIENCE = 300
"""Seconds that a question is asked again; nothing takes so long unless it never comes."""

STOP_SECONDS = 20
"""A server that is stopped cleanly may finish what it is doing."""

Answer = TypeVar("Answer")


class RunningAirflow(AirflowServers):
    """Scheduler, triggerer, DAG processor and API server of one home with a migrated database."""

    def __init__(self, home: Home, tasks_at_once: int = 2) -> None:
        super().__init__(home, children=Children(STOP_SECONDS))
        self._environment["AIRFLOW__CORE__PARALLELISM"] = str(tasks_at_once)
        self._database = home.airflow / "airflow.db"
        self._scheduler_log = home.log("scheduler")
        self.task_logs: Path = home.airflow / "logs"

    def until(self, asked: Callable[[], Answer], patience: float = PATIENCE) -> Answer:
        """Repeat a call until its result is true, and return that."""
        deadline = time.monotonic() + patience
        while not (answer := asked()):
            self.check()
            assert time.monotonic() < deadline, f"after {patience} s: {answer!r}; logs in {self.task_logs}"
            time.sleep(0.5)
        return answer

    def pid(self, name: str) -> int:
        """The process of one of the servers."""
        return self._children[name].pid

    @contextmanager
    def stopped(self, *names: str) -> Iterator[None]:
        """Stop some of the servers for the duration of the block."""
        self.stop(*names)
        yield
        for name in names:
            self.start(name)

    def trigger_run(self, dag_id: str, logical_date: str | None = None, **conf: Any) -> str:
        """Trigger a run, by default for now, which also unpauses the DAG, and return its id."""
        self.unpause(dag_id)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        body = {"logical_date": logical_date or now, "conf": conf}
        return str(self.send("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def unpause(self, dag_id: str) -> None:
        """Unpause a DAG, once Airflow has parsed it."""
        self.until(lambda: self.get(f"/api/v2/dags/{dag_id}"))
        super().unpause(dag_id)

    def reparse(self, dag_id: str) -> None:
        """Have a DAG's file parsed at once."""
        token = self.get(f"/api/v2/dags/{dag_id}")["file_token"]
        self.send("PUT", f"/api/v2/parseDagFile/{token}", {})

    def clear(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Clear a task, whatever its state."""
        body = {"dag_run_id": run_id, "task_ids": [task_id], "only_failed": False, "dry_run": False}
        self.send("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", body)

    def add_connection(self, conn_id: str, conn_type: str, **fields: Any) -> None:
        """Add a connection, as the form does."""
        given = {"connection_id": conn_id, "conn_type": conn_type, **fields}
        self.send("POST", "/api/v2/connections", {**given, "extra": json.dumps(fields.get("extra", {}))})

    def ended(self, dag_id: str, run_id: str) -> str:
        """The final state of a run; '' while it is running. Asked of the database, since tests ask often."""
        query = "select state from dag_run where dag_id = ? and run_id = ? and state in ('success', 'failed')"
        return "".join(state for (state,) in self.rows(query, dag_id, run_id))

    def task(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """The API's view of a task instance."""
        return self.get(f"{run_path(dag_id, run_id)}/taskInstances/{task_id}")

    def ended_processes(self, run_id: str, task_id: str = "") -> int:
        """How many processes of a run's tasks, or of one of them, have ended, as known to the scheduler.

        Wait for that before a deferred task may resume: Airflow fails a task whose next process runs before
        the scheduler has processed the end of the previous one.
        """
        lines = self._scheduler_log.read_text(errors="replace").splitlines()
        texts = ("Received executor event with state success", run_id, f"task_id='{task_id}")
        return sum(all(text in line for text in texts) for line in lines)

    def missing_xcoms(self, run_id: str) -> int:
        """How often a run's tasks asked for an XCom that doesn't exist, which Airflow logs as an error."""
        lines = self._scheduler_log.read_text(errors="replace").splitlines()
        return sum("XCom not found" in line and run_id in line for line in lines)

    def task_log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1) -> list[str]:
        """The messages of a task's try; none if it hasn't begun."""
        folder = self.task_logs / f"dag_id={dag_id}" / f"run_id={run_id}" / f"task_id={task_id}"
        log = folder / f"attempt={try_number}.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [str(json.loads(line)["event"]) for line in lines]

    def xcom(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """What a task returned; None if it has returned nothing yet."""
        path = f"{run_path(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/return_value"
        value = self.get(f"{path}?deserialize=true").get("value")
        return json.loads(value) if isinstance(value, str) else value

    @contextmanager
    def another_api_server(self, **settings: str) -> Iterator[str]:
        """Start a second API server of the same Airflow with other settings, and yield its URL."""
        url = f"http://127.0.0.1:{free_port()}"
        given = {"AIRFLOW__API__PORT": url.rpartition(":")[2], "AIRFLOW__API__BASE_URL": url, **settings}
        name, log = "another-api-server", self._home.log("another-api-server")
        command = [sys.executable, "-m", "airflow", "api-server"]
        child = self._children.start(name, command, log, {**self._environment, **given})
        try:
            asked = AirflowServers(self._home, int(given["AIRFLOW__API__PORT"]))
            self.until(lambda: child.poll() is not None or asked.ask("/api/v2/version"))
            assert child.poll() is None, log.read_text()
            yield url
        finally:
            self._children.stop(name)

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a Python command in the environment of the servers."""
        return subprocess.run(
            [sys.executable, *arguments], env=self._environment, capture_output=True, text=True
        )

    def rows(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        """Read from Airflow's database."""
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=30)) as database:
            return database.execute(query, values).fetchall()

    def _token(self) -> str:
        return str(self.until(lambda: self.ask("/auth/token").get("access_token")))


def run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}"
