"""Namespaces on the real servers of every release."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.servers.proxy import Proxy
from tests.support.hive_databases import drop_all

SERVERS = {"2.3.10": "metastore", "3.1.3": "hms3", "4.0.1": "hms4"}
"""Release: the fixture of its server."""
OTHERS = ("3.1.3", "4.0.1")
"""Releases that repeat what the first one shows."""


@pytest.fixture(params=[pytest.param(r, marks=pytest.mark.thorough) if r in OTHERS else r for r in SERVERS])
def server(request: pytest.FixtureRequest) -> MetastoreServer:
    """A server of each release in turn."""
    found: MetastoreServer = request.getfixturevalue(SERVERS[request.param])
    return found


@pytest.fixture
def namespace(server: MetastoreServer, tmp_path: Path) -> Iterator[Hive2Namespace]:
    with Hive2Namespace(uri=server.uri, root=str(tmp_path / "root")) as connected:
        yield connected


@pytest.fixture
def db(namespace: Hive2Namespace, database: str) -> Iterator[str]:
    """An existing, empty database; what is left of it goes after the test."""
    namespace.create_namespace({"id": [database]})
    yield database
    drop_all(namespace, database)


@pytest.fixture
def proxy(server: MetastoreServer) -> Iterator[Proxy]:
    """A proxy between a client and the server that can drop messages."""
    with Proxy(server.uri) as network:
        yield network


@pytest.fixture
def proxied(proxy: Proxy, namespace: Hive2Namespace) -> Iterator[Any]:
    """The same namespace as `namespace`, through the proxy."""
    root = namespace.namespace_id().rpartition("#")[2]
    with Hive2Namespace(uri=proxy.uri, root=root) as connected:
        yield connected
