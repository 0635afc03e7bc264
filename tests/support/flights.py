"""A pipeline of DAGs that a running Airflow schedules for months."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pandas
from nycflights.tables import TABLES, newest

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.namespace import Hive2Namespace
from quickstart.home import CONNECTION_IDS, Home, connection_to
from tests.e2e.dag_run import TREE, DagRun, dag_run


@dataclass(frozen=True)
class Pipeline:
    """The DAG's home, and the metastore that serves its tables."""

    home: Home
    metastore: EmbeddedMetastore
    said: str
    """What the quickstart printed."""

    def table(self, name: str, version: int | None = None) -> pandas.DataFrame:
        """All rows of `flights`, `weather` or `delays`, by default at the newest version."""
        with closing(Hive2Namespace(uri=self.metastore.uri)) as namespace:
            dataset = newest(namespace, TABLES[name])
            assert dataset is not None
            pinned = dataset.checkout_version(version) if version else dataset
            return pinned.to_table().to_pandas()

    def versions(self) -> dict[str, int]:
        """The tables' newest versions."""
        with closing(Hive2Namespace(uri=self.metastore.uri)) as namespace:
            datasets = {name: newest(namespace, table) for name, table in TABLES.items()}
            return {name: dataset.version for name, dataset in datasets.items() if dataset}

    @property
    def environment(self) -> dict[str, str]:
        """The variables of Airflow's processes, with a connection to the metastore that runs now."""
        fields = connection_to(self.metastore)
        connections = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name in CONNECTION_IDS}
        return {**self.home.environment, **connections}

    def run_id(self, month: str) -> str:
        """The id of the quickstart's run of a month."""
        with closing(sqlite3.connect(self.home.airflow / "airflow.db")) as database:
            rows = database.execute(
                "select run_id, conf from dag_run where dag_id = 'lance_flights' order by id"
            )
            return next(run_id for run_id, conf in rows if month in str(conf))

    @contextmanager
    def running(self, month: str | None) -> Iterator[DagRun]:
        """A run of the DAG in the background."""
        environment = {**os.environ, **self.environment, "PYTHONPATH": str(TREE / "example_dags")}
        with dag_run("example_dags/flights.py", {"month": month}, environment) as run:
            yield run

    def run(self, month: str | None) -> dict[str, Any]:
        """Run the DAG to its end, and return each task's state and XCom."""
        with self.running(month) as run:
            return run.result()
