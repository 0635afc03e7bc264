"""`Metastore` over a Glue Data Catalog: its databases and tables, updated with Glue's optimistic locking."""

from __future__ import annotations

import contextlib
import random
import time
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    TableNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId, is_addressable
from airflow_provider_lancens.namespace import namespace_properties, table_properties
from airflow_provider_lancens.namespace.batch_reads import BatchRead
from airflow_provider_lancens.namespace.glue import converters
from airflow_provider_lancens.namespace.glue.api import PAGE, GlueApi, GlueCall
from airflow_provider_lancens.namespace.glue.batch_reader import GlueBatchReader
from airflow_provider_lancens.namespace.glue.cas_probe import GlueCasProbe
from airflow_provider_lancens.namespace.glue.errors import (
    NAMESPACE_ERRORS,
    NEW_TABLE_ERRORS,
    NOT_FOUND,
    TABLE_ERRORS,
)
from airflow_provider_lancens.namespace.glue.settings import GlueSettings
from airflow_provider_lancens.namespace.locations import DATABASE_SUFFIX, join, normalize
from airflow_provider_lancens.namespace.metastore_protocol import (
    CatalogTable,
    Expectation,
    Namespace,
    ParameterChange,
    ServerInfo,
    TableLocation,
    TableUpdate,
    change_applied,
    contains,
    is_dropped,
    table_matches,
)

MAX_NAME = 255
"""Bytes of a name in UTF-8."""
NAMES_ONLY = ["NAME"]
"""Restricts Glue's responses to names where no other fields are needed."""
_OTHERS = frozenset("_-. ")
_LETTERS_MARKS_NUMBERS = ("L", "M", "N")
_ATTEMPTS = 20
"""Attempts of an update whose expectation still holds but whose VersionId has changed."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


class GlueMetastore:
    """`Metastore` over the databases of a catalog, and their tables."""

    namespace_levels = 1

    def __init__(self, settings: GlueSettings) -> None:
        """Take the settings; nothing is opened."""
        self._settings = settings
        self._api = GlueApi(settings)
        self._cas_probe = GlueCasProbe(self._api)
        self._batch_reader = GlueBatchReader()

    @property
    def fingerprint(self) -> str:
        """Endpoint, region and catalog."""
        return self._settings.fingerprint

    def close(self) -> None:
        """Close idle connections."""
        self._api.close()

    def check_name(self, name: str) -> None:
        """Refuse a name that Glue can't store, or that has a special meaning in a path or a pattern.

        Glue itself accepts nearly every character, and Athena only letters, digits and ``_`` unquoted.
        """
        if len(name.encode("utf-8", "replace")) > MAX_NAME:
            raise InvalidInputError(
                f"name {name[:40]!r}...: Glue allows at most {MAX_NAME} bytes, got {len(name)} characters"
            )
        if name != name.strip() or ".." in name or not all(map(_is_allowed, name)):
            raise InvalidInputError(
                f"name {name!r}: allowed in Glue are letters and digits of any script, '_', '-', "
                "'.' and inner spaces, but not '..'"
            )

    def default_location(self, namespace: NamespaceId, root: str) -> str:
        """Return ``{root}/{database}.db``."""
        return join(root, f"{namespace.name}{DATABASE_SUFFIX}")

    def create_namespace(self, namespace: Namespace) -> None:
        """Create a database."""

        def took_effect() -> bool:
            stored = self._find_namespace(namespace.id)
            wanted = namespace_properties.to_properties(namespace)
            return stored is not None and contains(namespace_properties.to_properties(stored), wanted)

        arguments = {"DatabaseInput": converters.database_input(namespace)}
        attempt = f"create namespace {namespace.id}"
        self._api.change(GlueCall("create_database", arguments, attempt, NAMESPACE_ERRORS), took_effect)

    def get_namespace(self, namespace: NamespaceId) -> Namespace:
        """Read a database."""
        attempt = f"read namespace {namespace}"
        call = GlueCall("get_database", {"Name": namespace.name}, attempt, NAMESPACE_ERRORS)
        return converters.to_namespace(namespace, self._api.read(call, "Database"))

    def deletable_folders(self, database: NamespaceId) -> Sequence[str]:
        """Return a database's location: Glue doesn't delete it, but Hive's and Spark's clients of Glue do."""
        location = self.get_namespace(database).location
        return [normalize(location)] if location else []

    def list_namespaces(self, parent: NamespaceId) -> Sequence[str]:
        """List all databases that an identifier can address."""
        return [name for name in self.all_databases(parent) if is_addressable(name)]

    def all_databases(self, parent: NamespaceId) -> Sequence[str]:
        """List the names of all databases, addressable or not."""
        attempt = f"list namespaces of {str(parent)!r}"
        call = GlueCall("get_databases", {"AttributesToGet": NAMES_ONLY}, attempt, NAMESPACE_ERRORS)
        return [raw["Name"] for page in self._api.pages(call, "DatabaseList") for raw in page]

    def check_droppable(self, namespace: NamespaceId) -> None:
        """Refuse nothing: Glue drops every database, ``default`` too."""

    def drop_namespace(self, namespace: NamespaceId) -> None:
        """Drop a database after checking that it is empty, since Glue would drop its tables with it.

        A table that another writer creates between the check and the drop is dropped from the catalog; its
        files are kept. Glue offers nothing to close that window.
        """
        held = next(self._table_names(namespace), None)
        if held is not None:
            raise NamespaceNotEmptyError(f"namespace {namespace} is not empty: it contains table {held!r}")
        attempt = f"drop namespace {namespace}"
        call = GlueCall("delete_database", {"Name": namespace.name}, attempt, NAMESPACE_ERRORS)
        self._api.change(call, lambda: self._find_namespace(namespace) is None)

    def _table_names(self, namespace: NamespaceId) -> Iterator[str]:
        arguments = {"DatabaseName": namespace.name, "AttributesToGet": NAMES_ONLY}
        call = GlueCall("get_tables", arguments, f"list tables of {namespace}", NAMESPACE_ERRORS)
        return (raw["Name"] for page in self._api.pages(call, "TableList") for raw in page)

    def _find_namespace(self, namespace: NamespaceId) -> Namespace | None:
        try:
            return self.get_namespace(namespace)
        except NamespaceNotFoundError:
            return None

    def server_info(self) -> ServerInfo:
        """Return the catalog in use; Glue has no API version."""
        catalog = self._settings.catalog_id or "the account's default"
        return ServerInfo("AWS Glue Data Catalog", catalog=catalog, compare_and_set=self._cas_probe.known())

    def create_table(self, table: CatalogTable) -> None:
        """Create an external catalog table."""

        def took_effect() -> bool:
            stored = self._find_table(table.id)
            return stored is not None and table_matches(stored, table)

        arguments = {
            "DatabaseName": table.id.namespace.name,
            "TableInput": converters.table_input(table),
        }
        call = GlueCall("create_table", arguments, f"create table {table.id}", NEW_TABLE_ERRORS)
        self._api.change(call, took_effect)

    def get_table(self, table: TableId) -> CatalogTable:
        """Read a catalog table."""
        return converters.to_table(table, self._raw_table(table))

    def get_tables(
        self,
        namespace: NamespaceId,
        names: Collection[str],
        *,
        columns: bool = True,  # noqa: ARG002 - Glue can't leave them out
    ) -> Iterator[BatchRead]:
        """Read catalog tables the cheaper way: each by a call of its own, or page by page.

        Glue has no call that reads many tables by name, and doesn't report how many pages a database has.
        """
        return self._batch_reader.read(
            namespace,
            [name.lower() for name in names],
            read_table=lambda name: self._find_table(namespace.table(name)),
            pages=lambda: self._table_pages(namespace),
        )

    def hides_missing_tables(self, namespace: NamespaceId) -> bool:
        """Whether these credentials may read the database, so that only its tables are denied or missing."""
        try:
            self.get_namespace(namespace)
        except (NamespaceNotFoundError, PermissionDeniedError):
            return False
        return True

    def scan_tables(self, namespace: NamespaceId, *, lance_only: bool = False) -> Iterator[BatchRead]:  # noqa: ARG002 - Glue filters only names
        """Read all tables page by page."""
        return (BatchRead(page) for page in self._table_pages(namespace))

    def list_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """List the names of all tables that an identifier can address, without reading the tables."""
        return [name for name in self._table_names(namespace) if is_addressable(name)]

    def list_lance_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """List the Lance tables by reading all in one pass: Glue's own filter supports only names."""
        return [
            catalog_table.id.name
            for page in self._table_pages(namespace)
            for catalog_table in page
            if table_properties.is_lance(catalog_table)
        ]

    def table_locations(self) -> Iterator[TableLocation]:
        """Iterate over the locations of all tables of the catalog, addressable or not."""
        for database in self.all_databases(NamespaceId(())):
            with contextlib.suppress(NamespaceNotFoundError):  # dropped meanwhile
                for page in self._raw_pages(database):
                    for raw in page:
                        if location := (raw.get("StorageDescriptor") or {}).get("Location"):
                            is_lance = table_properties.has_lance_type(raw.get("Parameters") or {})
                            yield TableLocation(database, raw["Name"], location, is_lance)

    def update_table(
        self, table: TableId, decide: Callable[[CatalogTable], ParameterChange | None]
    ) -> TableUpdate:
        """Change parameters by one UpdateTable under the VersionId that was read (specification: OCC).

        A concurrent update by another client is preserved and doesn't fail this one: the table is read
        again, and updated if the expectation still holds. An update whose reply is lost is recognized by
        the values it set: to distinguish it from an equal one, a caller must set a unique value.

        Raises:
            ConcurrentModificationError: (14) the expectation doesn't hold, or every attempt lost a race.
            UnsupportedOperationError: (0) there is an expectation, and the server keeps no VersionId.
        """
        for pause in _backoff():
            raw = self._raw_table(table)
            catalog_table = converters.to_table(table, raw)
            change = decide(catalog_table)
            if change is None:
                return TableUpdate(catalog_table, changed=False)
            self._check_expectation(table, raw, change.expect)
            try:
                self._update(table, raw, change)
            except ConcurrentModificationError as error:
                lost = error
            else:
                columns = catalog_table.columns if change.columns is None else change.columns
                parameters = change.applied_to(catalog_table.parameters)
                location = change.location or catalog_table.location
                after = replace(catalog_table, location=location, parameters=parameters, columns=columns)
                return TableUpdate(after, changed=True)
            time.sleep(pause)
        raise ConcurrentModificationError(
            f"table {table}: lost to concurrent updates in all {_ATTEMPTS} attempts; last conflict: {lost}"
        ) from lost

    def require_compare_and_set(self, namespace: NamespaceId) -> None:
        """Refuse a Glue-compatible server that ignores VersionId; AWS itself isn't probed."""
        self._cas_probe.require(namespace)

    def rename_table(self, table: TableId, to: TableId) -> NoReturn:
        """Refuse: Glue can't rename, and a copy under the new name wouldn't be atomic."""
        raise UnsupportedOperationError(
            f"cannot rename table {table} to {to}: Glue does not support renaming; register {to} "
            f"with the location and the properties of {table}, then deregister {table}: its data is "
            "not moved"
        )

    def drop_table(self, table: CatalogTable) -> None:
        """Drop a catalog table; Glue deletes no files."""
        call = GlueCall("delete_table", _address(table.id), f"drop table {table.id}", TABLE_ERRORS)
        self._api.drop_table(call, lambda: is_dropped(table, self._find_table(table.id)))

    def drop_tables(
        self, namespace: NamespaceId, tables: Collection[CatalogTable]
    ) -> Mapping[str, LanceNamespaceError]:
        """Drop catalog tables in batches; stop, keeping the rest, if a batch fails as a whole."""
        failed: dict[str, LanceNamespaceError] = {}
        rest = [table.id.name for table in tables]
        while rest:
            batch = rest[:PAGE]
            try:
                failed |= self._drop_batch(namespace, batch)
            except NamespaceNotFoundError:
                return {}  # the database was dropped, with all its tables
            except LanceNamespaceError as error:
                return failed | dict.fromkeys(rest, error)
            rest = rest[PAGE:]
        return failed

    def _raw_table(self, table: TableId) -> converters.Raw:
        call = GlueCall("get_table", _address(table), f"read table {table}", TABLE_ERRORS)
        raw: converters.Raw = self._api.read(call, "Table")
        return raw

    def _table_pages(self, namespace: NamespaceId) -> Iterator[list[CatalogTable]]:
        for page in self._raw_pages(namespace.name):
            yield [
                converters.to_table(namespace.table(raw["Name"]), raw)
                for raw in page
                if is_addressable(raw["Name"])
            ]

    def _raw_pages(self, database: str) -> Iterator[Sequence[converters.Raw]]:
        arguments = {"DatabaseName": database}
        call = GlueCall("get_tables", arguments, f"read tables of {database}", NAMESPACE_ERRORS)
        return self._api.pages(call, "TableList")

    def _find_table(self, table: TableId) -> CatalogTable | None:
        try:
            return self.get_table(table)
        except TableNotFoundError:
            return None

    def _check_expectation(self, table: TableId, raw: converters.Raw, expect: Expectation | None) -> None:
        if expect is None:
            return
        self.require_compare_and_set(table.namespace)
        if raw.get("VersionId") is None:
            raise UnsupportedOperationError(
                f"cannot update table {table} conditionally: it has no VersionId, as in federated "
                "catalogs; keep it in the account's default catalog"
            )
        stored = (raw.get("Parameters") or {}).get(expect.key)
        if stored != expect.value:
            raise ConcurrentModificationError(
                f"table {table}: parameter {expect.key!r} is {stored!r}, expected {expect.value!r}"
            )

    def _update(self, table: TableId, raw: converters.Raw, change: ParameterChange) -> None:
        version = raw.get("VersionId")
        arguments: dict[str, Any] = {
            "DatabaseName": table.namespace.name,
            "TableInput": converters.updated_input(self._api.input_shape("TableInput"), raw, change),
            "SkipArchive": True,  # archived versions count against a quota, and are never read
        }
        if version is not None:
            arguments["VersionId"] = version

        def took_effect() -> bool:
            stored = self._raw_table(table)
            after = converters.to_table(table, stored)
            return stored.get("VersionId") != version and change_applied(after, change)

        call = GlueCall("update_table", arguments, f"change table {table}", TABLE_ERRORS)
        self._api.change(call, took_effect)

    def _drop_batch(self, namespace: NamespaceId, names: Sequence[str]) -> dict[str, LanceNamespaceError]:
        arguments = {"DatabaseName": namespace.name, "TablesToDelete": list(names)}
        attempt = f"drop {len(names)} tables of {namespace}"
        response = self._api.send(GlueCall("batch_delete_table", arguments, attempt, NAMESPACE_ERRORS))
        details = {error["TableName"]: error.get("ErrorDetail", {}) for error in response.get("Errors", ())}
        return {
            name: self._api.error_of(detail, TABLE_ERRORS, f"drop table {namespace.table(name)}")
            for name, detail in details.items()
            if detail.get("ErrorCode") != NOT_FOUND
        }


def _is_allowed(character: str) -> bool:
    return character in _OTHERS or unicodedata.category(character).startswith(_LETTERS_MARKS_NUMBERS)


def _address(table: TableId) -> dict[str, str]:
    return {"DatabaseName": table.namespace.name, "Name": table.name}


def _backoff() -> Iterator[float]:
    for turn in range(_ATTEMPTS):
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**turn)
        yield random.uniform(0, longest)  # noqa: S311 - jitter between writers, not security
