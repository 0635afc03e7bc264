"""The lake of a running Airflow, and its browser."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.airflow.tables import Table
from tests.servers.proxy import Proxy

TREE = Path(__file__).parents[2]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is missing: install the package chromium"
)


WATCH_SECONDS = 2


POLL_SECONDS = 10
"""Of the waits: ample for whatever a busy machine does between two looks."""


@dataclass(frozen=True)
class Lake:
    """The servers of the DAGs' connections."""

    namespace: Hive2Namespace
    uri: str
    wire: Proxy
    """Another way to the same metastore, on which calls are counted: that of the waits alone."""
    root: Path
    database: str

    @property
    def folder(self) -> Path:
        """The root of a catalog without a metastore."""
        return self.root / "folder"

    def table(self, name: str) -> Table:
        return Table(self.namespace, self.database, name)

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables of Airflow's processes."""
        return {
            "AIRFLOW_CONN_LAKE": self._connection(self.uri),
            "AIRFLOW_CONN_COUNTED": self._connection(self.wire.uri),
            "AIRFLOW_CONN_FOLDER": json.dumps({"conn_type": "lance", "extra": {"root": str(self.folder)}}),
            "AIRFLOW_CONN_YARN": json.dumps(
                {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
            ),
            "AIRFLOW_CONN_ONE_CORE": json.dumps({"conn_type": "spark", "host": "local[1]"}),
            "AIRFLOW_CONN_SECRET": "postgres://user:hush-hush@127.0.0.1:1/db",
            "LANCE_EXAMPLE_CONNECTION": "lake",
            "LANCE_EXAMPLE_TABLE": str(self.table("watched")),
            "LANCE_EXAMPLE_POLL": str(WATCH_SECONDS),
            "LANCE_TEST_POLL": str(POLL_SECONDS),
        }

    def _connection(self, uri: str) -> str:
        return json.dumps({"conn_type": "lance_hive2", "host": uri, "extra": {"root": str(self.root)}})
