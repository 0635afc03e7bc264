"""A standalone Spark cluster and a Spark Connect server, on free loopback ports."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.servers.daemon import Daemon
from tests.servers.maven import jars_of

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

PRELOADED = {"spark.python.daemon.module": "tests.servers.preloaded_daemon"}
"""For local drivers of tests: their Python workers start with what each of them imports."""


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Run a master and workers with one core each; yield its URL once all workers are registered."""
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
def connect_server(folder: Path, python: str = sys.executable, **conf: str) -> Iterator[str]:
    """Run a Spark Connect server with two local cores and a Python's PySpark; yield its ``host:port``."""
    with connect_daemon(folder, python, **conf) as server:
        yield connect_address(server)


def connect_address(server: Daemon) -> str:
    """The ``host:port`` of a Spark Connect server, once it is ready."""
    # Not the address that it logs: before 4.0, it always listens on all addresses.
    return "127.0.0.1:" + server.read(r"Spark Connect server started at: \S+:(\d+)")


def connect_daemon(folder: Path, python: str = sys.executable, **conf: str) -> Daemon:
    """Start such a server, which may not be ready yet and can be killed."""
    home = SPARK_HOME if python == sys.executable else _spark_home(python)
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
    submit = [home / "bin" / "spark-submit", *_connect_jars(home), *options]
    command = [*submit, "--class", main, "spark-internal"]
    environment = {**_environment(), "SPARK_HOME": str(home), "PYSPARK_PYTHON": python}
    return Daemon(command, environment)


def _spark_home(python: str) -> Path:
    """The folder of a Python's PySpark."""
    asked = [python, "-c", "import pyspark; print(pyspark.__path__[0])"]
    return Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())


def _connect_jars(home: Path) -> tuple[str, ...]:
    """The jars of the server, for a PySpark that doesn't include it."""
    if any((home / "jars").glob("spark-connect_*.jar")):
        return ()
    [jar] = jars_of(Path(__file__).with_name("spark-connect-3.5.xml")).iterdir()
    return ("--jars", str(jar))


_LISTENING = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


def _daemon(main: str, *arguments: str) -> Daemon:
    return Daemon([SPARK_HOME / "bin" / "spark-class", main, *arguments], _environment())


def _environment() -> dict[str, str]:
    ours = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "SPARK_DAEMON_MEMORY": "512m",  # the server, which is also a daemon, needs this much
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK_HOME),
    }
    return {**os.environ, **ours}
