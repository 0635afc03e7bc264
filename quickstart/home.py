"""The folder of everything the quickstart creates, and Airflow's configuration for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_provider_lancens.embedded import EmbeddedMetastore

TREE = Path(__file__).parents[1]
DAGS = TREE / "example_dags"
DAG_ID = "lance_flights"
CONNECTION_IDS = ("lance_flights", "lake")
"""The quickstart's own, and the one that the other examples name."""
_DESCRIPTION = "The Hive Metastore that ./scripts/quickstart and ./scripts/airflow start"


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of the metastore, the tables, the landed files and Airflow's own files."""

    folder: Path

    @classmethod
    def chosen(cls) -> Home:
        """`LANCENS_HOME`, or `.quickstart` in this tree."""
        return cls(Path(os.environ.get("LANCENS_HOME") or TREE / ".quickstart").absolute())

    @property
    def airflow(self) -> Path:
        """Airflow's home."""
        return self.folder / "airflow"

    @property
    def landing(self) -> Path:
        """The folder of raw files for Spark to read."""
        return self.folder / "landing"

    @property
    def logs(self) -> Path:
        """The folder with the output of the processes started from here."""
        return self.folder / "logs"

    def log(self, name: str) -> Path:
        """The log of one process."""
        self.logs.mkdir(parents=True, exist_ok=True)
        return self.logs / f"{name}.log"

    def metastore(self) -> EmbeddedMetastore:
        """Return the metastore, not yet started; its tables are below its warehouse."""
        return EmbeddedMetastore(self.folder / "metastore")

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Airflow's processes find all this."""
        return {
            "AIRFLOW_HOME": str(self.airflow),
            "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__MIGHT_CONTAIN_DAG_CALLABLE": "quickstart.shown.can_run_here",
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW_VAR_LANCE_FLIGHTS_LANDING": str(self.landing),
            # Airflow's processes use HTTP on loopback between each other, which must bypass any proxy.
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    def save_connections(self, metastore: EmbeddedMetastore) -> None:
        """Write the connections to Airflow's database, where its UI shows them."""
        from airflow.models import Connection
        from airflow.utils.session import create_session

        with create_session() as session:
            session.query(Connection).where(Connection.conn_id.in_(CONNECTION_IDS)).delete()
            for conn_id in CONNECTION_IDS:
                session.add(Connection(conn_id=conn_id, description=_DESCRIPTION, **connection_to(metastore)))

    def migrate(self) -> None:
        """Create or migrate Airflow's database in the `environment` that is set.

        Raises:
            subprocess.CalledProcessError: it couldn't; the log says why.
        """
        self.airflow.mkdir(parents=True, exist_ok=True)
        with self.log("migrate").open("w") as log:
            command = [sys.executable, "-m", "airflow", "db", "migrate"]
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=True)


def connection_to(metastore: EmbeddedMetastore) -> dict[str, Any]:
    """The fields of a connection to this metastore."""
    extra = json.dumps({"root": str(metastore.warehouse)})
    return {"conn_type": "lance_hive2", "host": metastore.uri, "extra": extra}
