"""A hook's typed helpers, against a real metastore."""

from collections.abc import Callable, Iterator
from contextlib import closing

import lance
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, Connection
from lance_namespace import DeclareTableRequest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.base import LanceHook
from airflow_provider_lancens.hooks.errors import LanceRetryableError
from airflow_provider_lancens.hooks.versions import TableVersion
from tests.integration.airflow.tables import Table

Connect = Callable[..., str]


@pytest.fixture
def hook(lake: str) -> Iterator[LanceHook]:
    with closing(LanceHook.for_connection(lake)) as hook:
        yield hook


def test_the_test_button_tells_what_it_reached(hook: LanceHook, metastore: MetastoreServer) -> None:
    reached, message = hook.test_connection()
    assert reached, message
    assert metastore.uri in message
    assert "Lance (Hive Metastore 2.x)" in message
    assert "Hive Metastore, API version 3.0, compare-and-set not probed" in message
    assert "Namespaces: " in message


@pytest.mark.parametrize(
    ("conn_type", "catalog", "namespaces"),
    [
        ("lance_hive2", "catalog hive,", "Namespaces: default"),
        ("lance_hive3", "catalog any", "Namespaces: hive"),
    ],
)
def test_the_test_button_tells_the_catalog_in_use(
    connect: Connect, hms4: MetastoreServer, conn_type: str, catalog: str, namespaces: str
) -> None:
    hook = LanceHook.for_connection(connect(conn_type=conn_type, host=hms4.uri))
    reached, message = hook.test_connection()
    assert reached, message
    assert catalog in message
    assert namespaces in message


def test_the_test_button_tells_what_a_probe_found(hook: LanceHook, table: Table) -> None:
    table.declare()
    request = DeclareTableRequest(id=[table.database, "managed"], properties={"managed_by": "impl"})
    hook.get_conn().declare_table(request)
    assert "compare-and-set yes" in hook.test_connection()[1]


def test_a_server_without_catalogs_is_told_with_the_type_that_fits(
    connect: Connect, metastore: MetastoreServer
) -> None:
    hook = LanceHook.for_connection(connect(conn_type="lance_hive3", host=metastore.uri))
    reached, message = hook.test_connection()
    assert not reached
    assert "connection type lance_hive2" in message


def test_the_servers_may_be_those_of_a_hive_metastore_connection(
    connect: Connect, metastore: MetastoreServer
) -> None:
    connect("metastore_default", "hive_metastore", host=metastore.uri)
    extra = {"hive_metastore_conn_id": "metastore_default"}
    reached, message = LanceHook.for_connection(connect(extra=extra)).test_connection()
    assert reached, message


def test_the_test_button_of_airflow_itself_reaches_the_metastore(lake: str) -> None:
    connection = Connection.get(lake)
    reached, message = connection.get_hook().test_connection()
    assert reached, message


def test_the_test_button_names_every_server_that_did_not_answer(
    connect: Connect, free_ports: list[int]
) -> None:
    hosts = [f"127.0.0.1:{port}" for port in free_ports]
    reached, message = LanceHook.for_connection(connect(host=",".join(hosts))).test_connection()
    assert not reached
    assert all(host in message for host in hosts)
    assert "SERVICE_UNAVAILABLE" in message


def test_a_table_that_nobody_declared_has_no_version(hook: LanceHook, table: Table) -> None:
    assert hook.table_version(str(table)) is None


def test_a_declared_table_without_data_has_no_version(hook: LanceHook, table: Table) -> None:
    table.declare()
    assert hook.table_version(str(table)) is None


def test_a_tables_version_is_the_storages(hook: LanceHook, table: Table) -> None:
    location = table.declare()
    table.advance()
    assert table.advance() == 2
    assert hook.table_version(str(table)) == TableVersion(str(table), 2, location)


def test_a_tables_version_follows_a_writer_that_knows_only_the_path(hook: LanceHook, table: Table) -> None:
    location = table.declare()
    table.advance()
    lance.dataset(location).delete("n = 1")
    seen = hook.table_version(str(table))
    assert seen is not None
    assert seen.version == 2


def test_a_declared_managed_table_has_no_version(hook: LanceHook, table: Table) -> None:
    table.declare()
    request = DeclareTableRequest(id=[table.database, "managed"], properties={"managed_by": "impl"})
    table.namespace.declare_table(request)
    assert hook.table_version(f"{table.database}$managed") is None


def test_a_name_that_no_table_can_have_fails_for_good(hook: LanceHook) -> None:
    with pytest.raises(AirflowFailException, match=r"looking at table 'orders' .*INVALID_INPUT"):
        hook.table_version("orders")


def test_a_metastore_that_does_not_answer_may_be_asked_again(connect: Connect, free_ports: list[int]) -> None:
    hook = LanceHook.for_connection(connect(host=f"127.0.0.1:{free_ports[0]}"))
    with pytest.raises(LanceRetryableError, match="SERVICE_UNAVAILABLE"):
        hook.table_version("sales$orders")
