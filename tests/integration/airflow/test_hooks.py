"""A hook's typed methods, with a real metastore."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing

import lance
import pytest
from airflow.sdk import Connection
from lance_namespace import DeclareTableRequest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, LanceRetryableError
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from tests.integration.airflow.tables import Table

Connect = Callable[..., str]


@pytest.fixture
def hook(lake: str) -> Iterator[LanceHook]:
    with closing(LanceHook.for_connection(lake)) as hook:
        yield hook


def test_the_connection_test_reports_what_it_reached(hook: LanceHook, metastore: MetastoreServer) -> None:
    reached, message = hook.test_connection()
    assert reached, message
    assert metastore.uri in message
    assert "Lance (Hive Metastore 2.x)" in message
    assert "Hive Metastore, API version 3.0, compare-and-set not probed" in message
    assert "Namespaces: " in message


@pytest.mark.parametrize(
    ("conn_type", "catalog", "namespaces"),
    [
        # The databases of the server, which other tests share, or its catalogs.
        ("lance_hive2", "catalog hive,", r"Namespaces: (?!hive\b)\w"),
        ("lance_hive3", "catalog any", r"Namespaces: hive\b"),
    ],
)
def test_the_connection_test_reports_the_catalog(
    connect: Connect, hms4: MetastoreServer, conn_type: str, catalog: str, namespaces: str
) -> None:
    hook = LanceHook.for_connection(connect(conn_type=conn_type, host=hms4.uri))
    reached, message = hook.test_connection()
    assert reached, message
    assert catalog in message
    assert re.search(namespaces, message), message


def test_the_connection_test_reports_the_result_of_a_probe(hook: LanceHook, table: Table) -> None:
    table.declare()
    request = DeclareTableRequest(id=[table.database, "managed"], properties={"managed_by": "impl"})
    hook.get_conn().declare_table(request)
    assert "compare-and-set yes" in hook.test_connection()[1]


def test_a_server_without_catalogs_is_reported_with_the_right_connection_type(
    connect: Connect, metastore: MetastoreServer
) -> None:
    hook = LanceHook.for_connection(connect(conn_type="lance_hive3", host=metastore.uri))
    reached, message = hook.test_connection()
    assert not reached
    assert "connection type lance_hive2" in message


def test_servers_can_be_taken_from_a_hive_metastore_connection(
    connect: Connect, metastore: MetastoreServer
) -> None:
    connect("metastore_default", "hive_metastore", host=metastore.uri)
    extra = {"hive_metastore_conn_id": "metastore_default"}
    reached, message = LanceHook.for_connection(connect(extra=extra)).test_connection()
    assert reached, message


def test_airflows_own_connection_test_reaches_the_metastore(lake: str) -> None:
    connection = Connection.get(lake)
    reached, message = connection.get_hook().test_connection()
    assert reached, message


def test_the_connection_test_names_every_unreachable_server(connect: Connect, free_ports: list[int]) -> None:
    hosts = [f"127.0.0.1:{port}" for port in free_ports]
    reached, message = LanceHook.for_connection(connect(host=",".join(hosts))).test_connection()
    assert not reached
    assert all(host in message for host in hosts)
    assert "SERVICE_UNAVAILABLE" in message


def test_an_undeclared_table_has_no_version(hook: LanceHook, table: Table) -> None:
    assert hook.table_status(str(table)) == TableStatus(TableId.of(table.id))


def test_a_declared_table_without_data_has_no_version(hook: LanceHook, table: Table) -> None:
    location = table.declare()
    assert hook.table_status(str(table)) == TableStatus(TableId.of(table.id), location)


def test_the_version_is_read_from_the_storage(hook: LanceHook, table: Table) -> None:
    location = table.declare()
    table.advance()
    assert table.advance() == 2
    assert hook.table_status(str(table)) == TableStatus(TableId.of(table.id), location, 2)


def test_the_version_includes_commits_of_direct_writers(hook: LanceHook, table: Table) -> None:
    location = table.declare()
    table.advance()
    lance.dataset(location).delete("n = 1")
    assert hook.table_status(str(table)).version == 2


def test_a_declared_managed_table_has_no_version(hook: LanceHook, table: Table) -> None:
    table.declare()
    request = DeclareTableRequest(id=[table.database, "managed"], properties={"managed_by": "impl"})
    table.namespace.declare_table(request)
    assert hook.table_status(f"{table.database}$managed").version == 0


def test_an_invalid_table_name_fails_without_retry(hook: LanceHook) -> None:
    with pytest.raises(AirflowFailException, match=r"polling table 'orders' .*INVALID_INPUT"):
        hook.table_status("orders")


def test_an_unreachable_metastore_is_a_retryable_error(connect: Connect, free_ports: list[int]) -> None:
    hook = LanceHook.for_connection(connect(host=f"127.0.0.1:{free_ports[0]}"))
    with pytest.raises(LanceRetryableError, match="SERVICE_UNAVAILABLE"):
        hook.table_status("sales$orders")
