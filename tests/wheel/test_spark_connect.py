"""`wheel[spark-connect]`: an ingestion through a Spark Connect server."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import lance
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.servers.spark import connect_server
from tests.support.installed_packages import TREE, Installed, on_each_python

pytestmark = pytest.mark.long


@on_each_python("spark-connect")
def test_a_dag_ingests_through_a_connect_server(
    installed: Installed,
    metastore: MetastoreServer,
    connection: Callable[..., dict[str, str]],
    database: str,
    tmp_path: Path,
) -> None:
    with connect_server(tmp_path, str(installed.python)) as address:
        host, port = address.split(":")
        connections = {
            **connection(host=metastore.uri, extra={"root": str(tmp_path)}),
            **connection("server", "spark_connect", host=f"sc://{host}", port=int(port)),
        }
        outcome, log = installed.run_dag(
            TREE / "tests/wheel/dags/connect.py", TEST_DATABASE=database, **connections
        )

    assert outcome["ingest"]["xcom"]["inserted"] == 3
    assert "pandas" not in log.lower()
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        written = lance.dataset(namespace_client=namespace, table_id=[database, "numbers"])
        assert written.to_table().to_pydict() == {"n": [0, 1, 2]}
