"""An Airflow home of the tests' own, and DAG runs in it that a test can watch."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.airflow.tables import Table

TREE = Path(__file__).parents[2]
DAGS = Path(__file__).parent / "dags"
_OF_TEST = ("AIRFLOW_CONN_", "HADOOP_CONF_DIR")
"""What a test's fixtures define in the environment."""


class DagRun:
    """A DAG's run in a process of its own, whose log is read as it comes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: list[str] = []

    def wait_for(self, words: str) -> None:
        """Read on until a line of the log holds these words."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            if words in line:
                return
        pytest.fail(f"the run ended without {words!r}:\n{self.log}")

    def signal(self, number: int) -> None:
        """Send its process a signal."""
        self._process.send_signal(number)

    def result(self) -> dict[str, Any]:
        """Read to the end: each task's state and XCom, by task id."""
        assert self._process.stdout is not None
        self._lines += self._process.stdout
        assert self._process.wait() == 0, self.log
        # Spark, where it ran, may still say goodbye after the last word.
        last = next(line for line in reversed(self._lines) if line.startswith("{"))
        outcome: dict[str, Any] = json.loads(last)
        return outcome

    @property
    def log(self) -> str:
        return "".join(self._lines)


@pytest.fixture(scope="session")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an Airflow with a database of its own and the DAGs of this folder."""
    home = tmp_path_factory.mktemp("airflow")
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
    }
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return environment


@pytest.fixture
def start(airflow_home: dict[str, str]) -> Iterator[Callable[..., DagRun]]:
    """Start a run of one of the DAGs with these parameters, beside the test."""
    with ExitStack() as processes:

        def run(dag_id: str, **params: Any) -> DagRun:
            of_test = {key: value for key, value in os.environ.items() if key.startswith(_OF_TEST)}
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.run_dag", str(DAGS / f"{dag_id}.py"), json.dumps(params)],
                env={**airflow_home, **of_test},
                cwd=TREE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            processes.enter_context(process)
            processes.callback(process.kill)
            return DagRun(process)

        yield run


@pytest.fixture
def lake(metastore: MetastoreServer, connect: Callable[..., str], tmp_path: Path) -> str:
    """The id of an Airflow connection to the metastore, with a root of the test's own."""
    return connect(host=metastore.uri, extra={"root": str(tmp_path)})


@pytest.fixture
def table(metastore: MetastoreServer, database: str, tmp_path: Path) -> Iterator[Table]:
    """A table that nobody has declared yet, in a database of its own."""
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        yield Table(namespace, database, "orders")
