"""Airflow's four servers as children of this process: started, asked for their health, ended by id."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

from quickstart.children import Children
from quickstart.home import DAG_ID, Home

COMPONENTS = ("api-server", "scheduler", "triggerer", "dag-processor")
# Their log servers would listen on all addresses, and logs are read from the files on this machine.
_OPTIONS = {"scheduler": ["--skip-serve-logs"], "triggerer": ["--skip-serve-logs"]}
_USER = "admin"
_WITHOUT_LOGIN = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True"}
START_SECONDS = 300
UI_PORTS = range(8080, 8100)
"""The first of these that is free is used for the UI."""

_open = build_opener(ProxyHandler({})).open  # loopback must bypass any proxy


class ServerError(RuntimeError):
    """A server ended unexpectedly, or didn't become healthy in time."""


class AirflowServers:
    """Scheduler, triggerer, DAG processor and API server, on loopback.

    Args:
        home: where their logs go.
        port: of the API server and its UI; 0 takes a free one.
        children: where its processes belong.
        password: of the only user, ``admin``; if it is empty, everybody on this machine is an administrator.
    """

    def __init__(
        self, home: Home, port: int = 0, children: Children | None = None, password: str = ""
    ) -> None:
        self.url = f"http://127.0.0.1:{port or free_port()}"
        self._home = home
        self._password = password
        login = _login(home, password) if password else _WITHOUT_LOGIN
        self._environment = {**os.environ, **_settings(self.url), **login}
        self._children = children or Children()

    def __enter__(self) -> Self:
        for name in COMPONENTS:
            self.start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(*COMPONENTS)

    def start(self, name: str) -> None:
        """Start one of them, for the first time or again."""
        command = [sys.executable, "-m", "airflow", name, *_OPTIONS.get(name, [])]
        self._children.start(name, command, self._home.log(name), self._environment)

    def stop(self, *names: str) -> None:
        """End some of them cleanly, or by force after some seconds."""
        self._children.stop(*names)

    def kill(self, name: str) -> None:
        """Kill one without a clean shutdown, as a lost machine would."""
        self._children.kill(name)

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
        for name in COMPONENTS:
            child = self._children[name]
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
        return self.get(f"/api/v2/dags/{DAG_ID}").get("dag_id") == DAG_ID

    def unpause(self, dag_id: str) -> None:
        """Unpause a DAG that Airflow has parsed."""
        self.send("PATCH", f"/api/v2/dags/{dag_id}?update_mask=is_paused", {"is_paused": False})

    def get(self, path: str) -> dict[str, Any]:
        """Return the response to a logged-in user; empty if there is none."""
        return self.ask(path, self._token())

    def send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request of a logged-in user, and return the response.

        Raises:
            urllib.error.HTTPError: it was refused.
        """
        headers = {"Authorization": f"Bearer {self._token()}", "Content-Type": "application/json"}
        request = Request(self.url + path, json.dumps(body).encode(), headers, method=method)
        with _open(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def _token(self) -> str:
        if not self._password:
            return str(self.ask("/auth/token").get("access_token", ""))
        body = json.dumps({"username": _USER, "password": self._password}).encode()
        request = Request(self.url + "/auth/token", body, {"Content-Type": "application/json"}, method="POST")
        try:
            with _open(request, timeout=10) as answer:
                return str(json.load(answer).get("access_token", ""))
        except (URLError, OSError):  # not up yet
            return ""

    def ask(self, path: str, token: str = "") -> dict[str, Any]:
        """Return the API server's answer; empty if there is none yet."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with _open(Request(self.url + path, headers=headers), timeout=10) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except (URLError, OSError):  # not up yet, or the DAG isn't read yet
            return {}


def ui_port() -> int:
    """Return the first port of `UI_PORTS` that is free on loopback, or any free one."""
    for port in UI_PORTS:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)):
                return port
    return free_port()


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
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(Path(__file__).parent / "plugins"),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
    }


def _login(home: Home, password: str) -> dict[str, str]:
    file = home.airflow / "passwords.json"
    home.airflow.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        json.dump({_USER: password}, opened)
    return {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{_USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(file),
    }
