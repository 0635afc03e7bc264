"""Several servers of one metastore: any available one is used, and a restarted one is found again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lance_namespace.errors import ServiceUnavailableError
from pymetastore.hive_metastore.ttypes import Database

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.hive.raw import raw_client
from tests.servers.proxy import Proxy, closed_port

pytestmark = pytest.mark.thorough

ROOT = {"id": []}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[EmbeddedMetastore, EmbeddedMetastore]]:
    """Two servers to disturb; each has its own database, by which tests distinguish them."""
    with EmbeddedMetastore(tmp_path / "one") as one, EmbeddedMetastore(tmp_path / "two") as two:
        mark(one, "one")
        mark(two, "two")
        yield one, two


def mark(server: EmbeddedMetastore, name: str) -> None:
    with raw_client(server.uri) as client:
        client.create_database(Database(name=name))


def answering(namespace: Hive2Namespace) -> str:
    names = namespace.list_namespaces(ROOT).namespaces
    return next(name for name in names if name != "default")


def test_calls_fail_over_to_the_other_server_and_back(
    pair: tuple[EmbeddedMetastore, EmbeddedMetastore],
) -> None:
    one, two = pair
    with Hive2Namespace(uri=f"{one.uri},{two.uri}", root="/nowhere") as namespace:
        assert answering(namespace) == "one"
        one.kill()
        assert answering(namespace) == "two"
        one.start()
        assert answering(namespace) == "two"  # no reason to switch
        two.kill()
        assert answering(namespace) == "one"
        one.kill()
        with pytest.raises(ServiceUnavailableError) as refusal:
            answering(namespace)
        assert all(uri in str(refusal.value) for uri in (one.uri, two.uri))
        two.start()
        assert answering(namespace) == "two"


@pytest.mark.long  # the first test covers restarts of two servers
def test_a_restarted_server_gets_new_connections(tmp_path: Path, database: str) -> None:
    with EmbeddedMetastore(tmp_path / "hms") as server:
        namespace = Hive2Namespace(uri=server.uri, root=str(tmp_path))
        namespace.create_namespace({"id": [database]})
        namespace.declare_table({"id": [database, "before"]})
        server.kill()
        server.start()
        namespace.declare_table({"id": [database, "after"]})
        assert namespace.list_tables({"id": [database]}).tables == ["after", "before"]
        namespace.close()


def test_an_unreachable_first_server_delays_only_the_first_call(metastore: EmbeddedMetastore) -> None:
    with Proxy(metastore.uri) as proxy:
        with Hive2Namespace(uri=f"{closed_port()},{proxy.uri}", root="/nowhere") as namespace:
            for _ in range(3):
                namespace.list_namespaces(ROOT)
        assert proxy.connections == 1


def test_a_change_interrupted_by_a_crash_is_verified_on_the_other_server(
    metastore: EmbeddedMetastore, tmp_path: Path, database: str
) -> None:
    """Two servers with one database, simulated by two proxies for the same server."""
    with Proxy(metastore.uri) as dying, Proxy(metastore.uri) as other:
        fault = dying.lose_reply("create_table_with_environment_context")
        with Hive2Namespace(uri=f"{dying.uri},{other.uri}", root=str(tmp_path)) as namespace:
            namespace.create_namespace({"id": [database]})
            namespace.declare_table({"id": [database, "t"]})
            assert fault.happened.is_set()
            assert "create_table_with_environment_context" not in other.calls
            assert "get_table_req" in other.calls
            namespace.drop_namespace({"id": [database], "behavior": "cascade"})
