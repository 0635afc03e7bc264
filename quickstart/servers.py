"""Airflow's four servers as children of this process: started, asked for their health, ended by id."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Self
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

from quickstart.home import DAG_ID, Home

COMPONENTS = ("api-server", "scheduler", "triggerer", "dag-processor")
START_SECONDS = 300
STOP_SECONDS = 20

_open = build_opener(ProxyHandler({})).open  # loopback must bypass any proxy


class ServerError(RuntimeError):
    """A server ended unexpectedly, or didn't become healthy in time."""


class AirflowServers:
    """Scheduler, triggerer, DAG processor and API server, on loopback.

    Args:
        home: where their logs go.
        port: of the API server and its UI; 0 takes a free one.
    """

    def __init__(self, home: Home, port: int = 0) -> None:
        self.url = f"http://127.0.0.1:{port or free_port()}"
        self._home = home
        self._environment = {**os.environ, **_settings(self.url)}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        for name in COMPONENTS:
            self.start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(*self._children)

    def start(self, name: str) -> None:
        """Start one of them, for the first time or again."""
        with self._home.log(name).open("a") as log:
            self._children[name] = subprocess.Popen(
                [sys.executable, "-m", "airflow", name],
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its own children end with it, and Ctrl-C is ours to pass on
            )

    def stop(self, *names: str) -> None:
        """End some of them cleanly, or by force after a while."""
        children = [self._children[name] for name in names]
        for child in children:
            _signal_group(child, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, deadline - time.monotonic()))
            _signal_group(child, signal.SIGKILL)
            child.wait()

    def kill(self, name: str) -> None:
        """Kill one without a clean shutdown, as a lost machine would."""
        _signal_group(self._children[name], signal.SIGKILL)
        self._children[name].wait()

    def wait_until_ready(self) -> None:
        """Wait until every server is healthy and the DAG can be triggered.

        Raises:
            ServerError: one ended, or it took too long; the message names the log.
        """
        deadline = time.monotonic() + START_SECONDS
        while not (self.healthy() and self.has_dag()):
            self.check()
            if time.monotonic() > deadline:
                raise ServerError(
                    f"Airflow is not ready after {START_SECONDS} s; its logs are in {self._home.logs}"
                )
            time.sleep(1)

    def check(self) -> None:
        """See that all still run.

        Raises:
            ServerError: one ended; the message names its log.
        """
        for name, child in self._children.items():
            if child.poll() is not None:
                log = self._home.log(name)
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
                raise ServerError(
                    f"airflow {name} exited with code {child.returncode}. The last lines of {log}:\n{tail}"
                )

    def healthy(self) -> bool:
        """Whether every server says that it is."""
        health = self.ask("/api/v2/monitor/health")
        parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
        return all((health.get(part) or {}).get("status") == "healthy" for part in parts)

    def has_dag(self) -> bool:
        """Whether the DAG is there to be run."""
        token = self.ask("/auth/token").get("access_token", "")
        return self.ask(f"/api/v2/dags/{DAG_ID}", token).get("dag_id") == DAG_ID

    def ask(self, path: str, token: str = "") -> dict[str, Any]:
        """Return the API server's answer; empty if there is none yet."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with _open(Request(self.url + path, headers=headers), timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (URLError, OSError):  # not up yet, or the DAG isn't read yet
            return {}


def free_port() -> int:
    """Return a port on loopback that is currently free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _settings(url: str) -> dict[str, str]:
    port = url.rpartition(":")[2]
    return {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": port,
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(max(2, os.cpu_count() or 2)),  # each Spark task is a JVM
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
    }


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # all its processes have ended
        os.killpg(child.pid, number)
