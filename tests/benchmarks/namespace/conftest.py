"""A large database, and three clients to compare: ours, bare Thrift, lance-namespace-impls."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.benchmarks.namespace.bare_thrift import bare_client, new_table
from tests.servers.peer import Peer, peer_namespace
from tests.support.benchmark_sizes import TABLES


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="session")
def ours(metastore: MetastoreServer, root: Path) -> Iterator[Hive2Namespace]:
    with Hive2Namespace(uri=metastore.uri, root=str(root)) as namespace:
        yield namespace


@pytest.fixture(scope="session")
def bare(metastore: MetastoreServer) -> Any:
    return bare_client(metastore.uri)


@pytest.fixture(scope="session")
def peer(metastore: MetastoreServer, root: Path) -> Iterator[Peer]:
    properties = {"uri": metastore.uri, "root": str(root)}
    with peer_namespace("hive2", "Hive2Namespace", properties) as found:
        yield found


@pytest.fixture(scope="session")
def large_database(ours: Hive2Namespace, bare: Any, root: Path) -> str:
    """A database of many tables, half of them Lance."""
    ours.create_namespace({"id": ["large_database"]})
    for number in range(TABLES):
        kind = {"table_type": "lance"} if number % 2 else {}
        name = f"t{number:05}"
        bare.create_table(
            new_table("large_database", name, f"file:{root}/large_database.db/{name}.lance", **kind)
        )
    return "large_database"
