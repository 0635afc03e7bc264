"""One server, a crowded database on it, and the three who are compared: ours, bare Thrift, the peer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.benchmarks.namespace.raw import bare_client, entry
from tests.servers.peer import Peer, peer_namespace

TABLES = 2000
"""Half of them Lance."""


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
def crowded(ours: Hive2Namespace, bare: Any, root: Path) -> str:
    """A database of many tables, half of them Lance."""
    ours.create_namespace({"id": ["crowded"]})
    for number in range(TABLES):
        kind = {"table_type": "lance"} if number % 2 else {}
        name = f"t{number:05}"
        bare.create_table(entry("crowded", name, f"file:{root}/crowded.db/{name}.lance", **kind))
    return "crowded"
