"""A table on the S3 double, and a metastore in memory that changes tables as Hive's does."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_namespace.errors import (
    ConcurrentModificationError,
    LanceNamespaceError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.batch_reads import BatchRead
from airflow_provider_lancens.namespace.config import Properties, StorageConfig
from airflow_provider_lancens.namespace.metastore_namespace import MetastoreNamespace
from airflow_provider_lancens.namespace.metastore_protocol import (
    CatalogTable,
    Namespace,
    ParameterChange,
    ServerInfo,
    TableLocation,
    TableUpdate,
)
from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.namespace.storage import write_leases
from airflow_provider_lancens.spark.commit.append_overwrite import KINDS
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, KeyAttempts, look_up
from airflow_provider_lancens.spark.options import WriteIdentity
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.servers.s3_double import S3Double

PARTS = ["db", "t"]
NAME = "db$t"


class MemoryMetastore:
    """Of Hive: an alter compares one parameter, then writes the whole table as its client has read it."""

    namespace_levels = 1
    fingerprint = "memory"

    def __init__(self) -> None:
        self.namespaces: dict[NamespaceId, Namespace] = {}
        """Those that were created; tables need none."""
        self.tables: dict[TableId, CatalogTable] = {}
        self.gate: Callable[[object], object] = lambda call: None
        self.calls: list[str] = []
        self.lock = threading.Lock()

    def server_info(self) -> ServerInfo:
        return ServerInfo("memory")

    def check_name(self, name: str) -> None:
        """Accept any."""

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Drop any."""

    def create_namespace(self, namespace: Namespace) -> None:
        self.namespaces[namespace.id] = namespace

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        if namespace not in self.namespaces:
            raise NamespaceNotFoundError(str(namespace))
        return self.namespaces[namespace]

    def list_namespaces(self, parent: NamespaceId) -> list[str]:
        return [one.name for one in self.namespaces]

    def drop_namespace(self, namespace: NamespaceId) -> None:
        if self.list_tables(namespace):
            raise NamespaceNotEmptyError(str(namespace))
        self.namespaces.pop(namespace, None)

    def list_tables(self, namespace: NamespaceId) -> list[str]:
        return [one.name for one in self.tables if one.namespace == namespace]

    def list_lance_tables(self, namespace: NamespaceId) -> list[str]:
        return self.list_tables(namespace)

    def get_tables(
        self, namespace: NamespaceId, names: Collection[str], *, columns: bool = True
    ) -> Iterator[BatchRead]:
        yield BatchRead([self.tables[one] for one in map(namespace.table, names) if one in self.tables])

    def scan_tables(self, namespace: NamespaceId, *, lance_only: bool = False) -> Iterator[BatchRead]:
        yield from self.get_tables(namespace, self.list_tables(namespace))

    def drop_tables(
        self, namespace: NamespaceId, tables: Collection[CatalogTable]
    ) -> Mapping[str, LanceNamespaceError]:
        for table in tables:
            self.tables.pop(table.id, None)
        return {}

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        return f"{root}/{namespace.name}.db"

    def deletable_folders(self, database: NamespaceId) -> list[str]:
        return [f"s3://lake/{database.name}.db"]

    def require_compare_and_set(self, namespace: NamespaceId) -> None:
        """Always."""

    def table_locations(self) -> Iterator[TableLocation]:
        self._called("table_locations")
        for one in self.tables.values():
            is_lance = table_properties.is_lance(one)
            yield TableLocation(str(one.id.namespace), one.id.name, one.location or "", is_lance)

    def create_table(self, table: CatalogTable) -> None:
        self._called("create_table")
        with self.lock:
            if table.id in self.tables:
                raise TableAlreadyExistsError(str(table.id))
            self.tables[table.id] = table

    def get_table(self, table: TableId) -> CatalogTable:
        self._called("get_table")
        return self._found(table)

    def drop_table(self, table: CatalogTable) -> None:
        self._called("drop_table")
        with self.lock:
            del self.tables[table.id]

    def update_table(
        self, table: TableId, decide: Callable[[CatalogTable], ParameterChange | None]
    ) -> TableUpdate:
        found = self.get_table(table)
        change = decide(found)
        if change is None:
            return TableUpdate(found, changed=False)
        expect = change.expect or table_properties.unchanged(found)
        after = replace(
            found,
            parameters=change.applied_to(found.parameters),
            columns=found.columns if change.columns is None else change.columns,
            location=change.location or found.location,
        )
        self._called("alter_table")
        with self.lock:
            stored = self._found(table).parameters
            if expect and (stored.get(expect.key) != expect.value or expect.key not in after.parameters):
                raise ConcurrentModificationError(f"{expect} is {stored.get(expect.key)!r}")
            self.tables[table] = after
        return TableUpdate(after, changed=True)

    def close(self) -> None:
        """Do nothing."""

    def _found(self, table: TableId) -> CatalogTable:
        if table not in self.tables:
            raise TableNotFoundError(str(table))
        return self.tables[table]

    def _called(self, name: str) -> None:
        self.calls.append(name)
        self.gate(name)


class MemoryNamespace(MetastoreNamespace):
    """The package's namespace over that metastore."""

    _kind = "memory"


@dataclass
class Lake:
    """A table, written to under keys: each write adds the row of its key."""

    s3: S3Double
    managed_by: str = "storage"
    metastore: MemoryMetastore = field(default_factory=MemoryMetastore)
    kind: ClassVar[type[MemoryNamespace]] = MemoryNamespace

    @property
    def namespace(self) -> Any:
        storage = {f"{STORAGE_PREFIX}{name}": value for name, value in self.s3.storage.items()}
        properties = {"root": "s3://lake", **storage}
        return self.kind(self.metastore, StorageConfig.parse(Properties(properties, ["root"])), properties)  # type: ignore[arg-type]

    def gate(self, gate: Callable[[object], object]) -> None:
        self.s3.gate = self.metastore.gate = gate

    def declare(self, managed_by: str, **properties: str) -> None:
        self.namespace.declare_table({"id": PARTS, "properties": {"managed_by": managed_by, **properties}})

    def write(self, row: int) -> None:
        """Append a row under a key of its own, as `write_rows` does."""
        with resolved_table(self.namespace, NAME) as target:
            lookup = look_up(target, WriteIdentity(str(row), execution_id="1"))
            if lookup.earlier is not None:
                return
            base, rows = lookup.latest, pa.table({"row": [row]})
            version, columns = (None, None) if base is None else (base.version, base.lance_schema)
            with (
                KeyAttempts.started(target, lookup.write, base) as attempts,
                acquire_lease(target.dataset).kept_alive(end=True) as lease,
            ):
                fragments = write_fragments(
                    rows,
                    target.dataset.location if version is None else target.open(version),
                    mode="overwrite" if base is None else "append",
                    storage_options=self.s3.storage,
                )
                change = KINDS["append"](
                    NAME,
                    version,
                    rows.schema,
                    fragments,
                    written_for=columns,
                )
                committer = Committer(target, lookup.write, Counts(1, 1, 1), lease=lease, attempts=attempts)
                outcome = committer.commit(change, looked_up_to=lookup.version)
            if outcome.made_here and base is None:
                target.update_catalog_columns(rows.schema)

    def rows(self) -> list[int]:
        """The rows that a reader by name sees."""
        dataset = lance.dataset(
            namespace_client=self.namespace,
            table_id=PARTS,
            storage_options=self.s3.storage,
            session=lance.Session(),
        )
        return sorted(dataset.to_table()["row"].to_pylist())


def presume_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all leases have expired, and all conversions have died long ago."""
    for module in _users_of_silence():
        monkeypatch.setattr(module, "SILENCE", timedelta(seconds=-60))


def wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse at once what waits for writes that are running."""
    monkeypatch.setattr(write_leases, "_WAIT", 0.0)


def _users_of_silence() -> Collection[Any]:
    from airflow_provider_lancens.namespace.operations import authority_change

    return [write_leases, authority_change]
