"""Spark where users have it: a standalone cluster and a Spark Connect server, on loopback and free ports."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"
SMALL = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.pyspark.python": sys.executable,
}
"""A driver on loopback, and executors that fit into the cluster's workers."""


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master with workers of a core each; its URL, when all workers are registered."""
    with ExitStack() as daemons:
        master = daemons.enter_context(_daemon(f"{DEPLOY}.master.Master", *_LISTENING))
        url = master.read(r"Starting Spark master at (spark://\S+)")
        resources = ("--cores", "1", "--memory", "600m", "--work-dir", str(folder))
        for _ in range(workers):
            daemons.enter_context(_daemon(f"{DEPLOY}.worker.Worker", *_LISTENING, *resources, url))
        for _ in range(workers):
            master.read(r"(Registering worker) ")
        yield url


@contextmanager
def connect_server(folder: Path, **conf: str) -> Iterator[str]:
    """A Spark Connect server over two local cores; its ``host:port``."""
    settings = {
        "spark.master": "local[2]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.warehouse.dir": str(folder),
        **conf,
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [SPARK_HOME / "bin" / "spark-submit", *options, "--class", main, "spark-internal"]
    with _Daemon(command) as server:
        yield server.read(r"Spark Connect server started at: (\S+)")


_LISTENING = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


def _daemon(main: str, *arguments: str) -> "_Daemon":
    return _Daemon([SPARK_HOME / "bin" / "spark-class", main, *arguments])


class _Daemon:
    """A process of Spark's, whose log tells when it is ready."""

    def __init__(self, command: list[str | Path]) -> None:
        self._process = subprocess.Popen(
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read_on, daemon=True)
        self._reader.start()

    def read(self, pattern: str) -> str:
        """What the next line that matches has in the pattern's group; lines before it are passed over."""
        passed: list[str] = []
        with self._arrived:
            while True:
                assert self._arrived.wait_for(lambda: self._lines, timeout=120), f"no line like {pattern!r}"
                line = self._lines.pop(0)
                passed.append(line)
                assert line, f"it ended before it said {pattern!r}:\n{''.join(passed[-40:])}"
                if found := re.search(pattern, line):
                    return found[1]

    def _read_on(self) -> None:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            with self._arrived:
                self._lines.append(line)
                self._arrived.notify()
            if not line:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _environment() -> dict[str, str]:
    ours = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "512m",  # less is not enough for the server, which counts as a daemon too
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK_HOME),
    }
    return {**os.environ, **ours}
