"""Polls of many tables: a failing one doesn't affect the others."""

import tracemalloc
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.batch_reads import BatchRead, read_each
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.interface.status_reader import StatusReader
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from airflow_provider_lancens.namespace.operations.connection_stores import ConnectionStores
from airflow_provider_lancens.namespace.operations.table_operations import TableOperations
from airflow_provider_lancens.namespace.table_status import TableStatus
from tests.unit.namespace.operations.large_catalog import BATCH, LargeCatalog

BROKEN = "broken"


class Server:
    """A metastore that fails a batch with an unreadable table, and is unreachable for one database."""

    namespace_levels = 1

    def __init__(self, *tables: CatalogTable) -> None:
        self.tables = {catalog_table.id: catalog_table for catalog_table in tables}
        self.calls = 0

    def check_name(self, name: str) -> None:
        if " " in name:
            raise InvalidInputError("a name holds a space")

    def get_tables(
        self, namespace: NamespaceId, names: Collection[str], *, columns: bool = True
    ) -> Iterator[BatchRead]:
        yield read_each(list(names), partial(self._read, namespace))

    def hides_missing_tables(self, namespace: NamespaceId) -> bool:
        return namespace.name == "hidden"

    def _read(self, namespace: NamespaceId, names: Sequence[str]) -> list[CatalogTable]:
        self.calls += 1
        if namespace.name == "unreachable":
            raise ServiceUnavailableError("no reply")
        if namespace.name == "missing":
            raise NamespaceNotFoundError("no such database")
        if namespace.name in ("hidden", "denied"):
            raise PermissionDeniedError("not authorized")
        if namespace.name.startswith("refused"):
            raise InternalError("not authorized")
        if BROKEN in names:
            raise InternalError("a catalog table can't be read")
        wanted = [namespace.table(name) for name in names]
        return [self.tables[table] for table in wanted if table in self.tables]


def catalog_table(name: str, **parameters: str) -> CatalogTable:
    return CatalogTable(
        TableId.parse(name), "file:/lake/t", {table_properties.TABLE_TYPE: "lance", **parameters}
    )


def polls(metastore: Any) -> StatusReader:
    config = StorageConfig("/lake")
    return StatusReader(metastore, TableOperations(metastore, config, ConnectionStores(metastore, config)))


def status(name: str, *fields: Any, **more: Any) -> TableStatus:
    return TableStatus(TableId.parse(name), *fields, **more)


def poll(server: Server, *names: str) -> dict[str, Any]:
    found = polls(server).poll([TableId.parse(name) for name in names])
    return {str(table): one for table, one in found.items()}


def test_the_status_has_the_version_of_the_version_authority() -> None:
    server = Server(catalog_table("a$stored"), catalog_table("a$managed", managed_by="impl", version="7"))
    assert poll(server, "a$stored", "a$managed", "a$gone") == {
        "a$stored": status("a$stored", "/lake/t", needs_listing=True),
        "a$managed": status("a$managed", "/lake/t", 7),
        "a$gone": status("a$gone"),
    }
    assert server.calls == 1


def test_tables_of_a_missing_database_are_missing() -> None:
    assert poll(Server(), "missing$t", "missing$u") == {
        "missing$t": status("missing$t"),
        "missing$u": status("missing$u"),
    }


def test_a_catalog_table_that_fails_on_the_server_does_not_affect_others() -> None:
    names = [f"a$t{number}" for number in range(20)]
    found = poll(Server(*map(catalog_table, names)), *names, f"a${BROKEN}")
    assert isinstance(found.pop(f"a${BROKEN}"), InternalError)
    assert all(isinstance(one, TableStatus) for one in found.values())


@pytest.mark.parametrize("database", ["hidden", "denied"])
def test_a_denied_table_may_be_missing_where_its_database_may_be_read(database: str) -> None:
    denied = [f"{database}$t{number}" for number in range(12)]
    found = poll(Server(), *denied, "a$t")

    assert found["a$t"] == status("a$t")
    for name in denied:
        if database == "hidden":
            assert found[name] == status(name, denial="not authorized")
            assert str(found[name]).startswith(f"Table {name} does not exist, or may not be read: not")
        else:
            assert isinstance(found[name], PermissionDeniedError)


def test_a_foreign_table_fails_only_its_own_poll() -> None:
    hive = CatalogTable(TableId.parse("a$hive"), "file:/lake/hive")
    found = poll(Server(hive, catalog_table("a$t")), "a$hive", "a$t")
    assert isinstance(found["a$hive"], InvalidInputError)
    assert found["a$t"] == status("a$t", "/lake/t", needs_listing=True)


def test_an_unreachable_server_is_called_once() -> None:
    server = Server(catalog_table("a$t"), catalog_table("z$t"))
    found = poll(server, "a$t", "unreachable$t", "unreachable$u", "z$t")
    assert found["a$t"] == status("a$t", "/lake/t", needs_listing=True)
    assert all(
        isinstance(found[name], ServiceUnavailableError) for name in ("unreachable$t", "unreachable$u", "z$t")
    )
    assert server.calls == 2


def test_a_database_without_a_readable_table_does_not_affect_others() -> None:
    refused = [f"refused{number}$t{table}" for number in range(4) for table in range(6)]
    server = Server(catalog_table("a$t"))

    found = poll(server, *refused[:12], "a$t")
    assert found.pop("a$t") == status("a$t", "/lake/t", needs_listing=True)
    assert all(isinstance(one, ServiceUnavailableError) for one in found.values())

    server.calls = 0
    all_refused = poll(server, *refused)
    assert set(all_refused) == set(refused)
    of_each = server.calls // 3
    assert server.calls == 3 * of_each  # the fourth isn't asked
    server.calls = 0
    poll(server, *refused[:6])
    assert server.calls == of_each


def test_refused_databases_do_not_end_every_poll_before_the_same_others() -> None:
    tables = [TableId.parse(f"refused{database}$t{table}") for database in range(5) for table in range(5)]
    last = TableId.parse("a$t")
    reader, found = polls(Server(catalog_table("a$t"))), dict[TableId, Any]()
    for _ in range(100):
        found = reader.poll([*tables, last], found)
        if isinstance(found[last], TableStatus):
            break
    for _ in range(3):
        found = reader.poll([*tables, last], found)
        assert found[last] == status("a$t", "/lake/t", needs_listing=True)


def test_an_invalid_name_fails_only_its_own_poll_before_anything_is_sent() -> None:
    server = Server(catalog_table("a$t"))
    found = poll(server, "a$no name", "orders", "a$t")
    assert isinstance(found["a$no name"], InvalidInputError)
    assert "expected: 2" in str(found["orders"])
    assert found["a$t"].location == "/lake/t"
    assert server.calls == 1


@pytest.mark.parametrize("size", [300, 3000])
def test_a_poll_of_many_tables_holds_one_batch_of_them(size: int) -> None:
    parameter = 10_000
    catalog = LargeCatalog({"db": size}, parameter)
    tables = [TableId.of(["db", name]) for name in catalog.tables["db"]]
    tracemalloc.start()
    found = polls(catalog).poll(tables)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == size
    assert catalog.calls == {"read": size // BATCH}
    assert peak <= 2 * BATCH * parameter + 2000 * size


def test_a_status_that_has_not_changed_is_the_same_object_as_before() -> None:
    names = ("a$t", "a$u", "a$gone", "missing$t")
    tables = [TableId.parse(name) for name in names]
    server = Server(catalog_table("a$t"), catalog_table("a$u", managed_by="impl", version="7"))
    first = polls(server).poll(tables)
    changed = TableId.parse("a$u")
    server.tables[changed] = catalog_table("a$u", managed_by="impl", version="8")

    second = polls(server).poll(tables, first)

    assert second[changed] == status("a$u", "/lake/t", 8)
    assert all(second[table] is first[table] for table in tables if table != changed)
