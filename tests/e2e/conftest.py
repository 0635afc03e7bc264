"""A separate Airflow home, and DAG runs in it that a test can observe."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.e2e.dag_run import DagRun, DagRunner, dag_run
from tests.integration.airflow.tables import Table
from tests.servers.airflow_home import make_airflow_home

DAGS = Path(__file__).parent / "dags"
_OF_TEST = ("AIRFLOW_CONN_", "HADOOP_CONF_DIR")
"""What a test's fixtures define in the environment."""


@pytest.fixture(scope="session")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an Airflow with its own database and the DAGs of this folder."""
    home = tmp_path_factory.mktemp("airflow")
    make_airflow_home(home, os.environ)
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
    }


@pytest.fixture(scope="session")
def runner(airflow_home: dict[str, str]) -> Iterator[DagRunner]:
    """The process of all runs that no test disturbs."""
    shared = DagRunner(airflow_home)
    yield shared
    shared.stop()


@pytest.fixture
def start(runner: DagRunner) -> Callable[..., DagRun]:
    """Start a run of one of the DAGs with these parameters in the background."""
    return lambda dag_id, **params: runner.start(DAGS / f"{dag_id}.py", params, of_test())


@pytest.fixture
def start_alone(airflow_home: dict[str, str]) -> Iterator[Callable[..., DagRun]]:
    """The same in a separate process, which a test may kill."""
    with ExitStack() as runs:

        def run(dag_id: str, **params: Any) -> DagRun:
            environment = {**airflow_home, **of_test()}
            return runs.enter_context(dag_run(DAGS / f"{dag_id}.py", params, environment))

        yield run


def of_test() -> dict[str, str]:
    """Environment variables that the test's fixtures set."""
    return {key: value for key, value in os.environ.items() if key.startswith(_OF_TEST)}


@pytest.fixture
def lake(metastore: MetastoreServer, connect: Callable[..., str], tmp_path: Path) -> str:
    """The id of an Airflow connection to the metastore, with the test's own root."""
    return connect(host=metastore.uri, extra={"root": str(tmp_path)})


@pytest.fixture
def table(metastore: MetastoreServer, database: str, tmp_path: Path) -> Iterator[Table]:
    """A table that isn't declared yet, in its own database."""
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        yield Table(namespace, database, "orders")
