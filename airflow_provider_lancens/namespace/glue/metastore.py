"""A Data Catalog as a `Metastore`: its tables, changed by Glue's own optimistic locking."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from lance_namespace.errors import (
    ConcurrentModificationError,
    LanceNamespaceError,
    NamespaceNotFoundError,
    TableNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import marks, outcome
from airflow_provider_lancens.namespace.glue import entries
from airflow_provider_lancens.namespace.glue.calls import PAGE
from airflow_provider_lancens.namespace.glue.conditions import Conditions
from airflow_provider_lancens.namespace.glue.databases import Databases
from airflow_provider_lancens.namespace.glue.errors import NOT_FOUND, OF_NAMESPACE, OF_NEW_TABLE, OF_TABLE
from airflow_provider_lancens.namespace.glue.many import ManyTables
from airflow_provider_lancens.namespace.glue.settings import GlueSettings
from airflow_provider_lancens.namespace.metastore import Change, Expectation, ServerInfo, Table

_UPDATES = 20
"""How often an update is tried whose expectation still holds but whose VersionId has moved on."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


class GlueMetastore(Databases):
    """The verbs of a metastore over the databases of a catalog, and their tables."""

    def __init__(self, settings: GlueSettings) -> None:
        """Take the settings; nothing is opened."""
        super().__init__(settings)
        self._conditions = Conditions(self._calls)
        self._many = ManyTables()

    def server_info(self) -> ServerInfo:
        """The catalog in use; Glue has no version of its own."""
        catalog = self._settings.catalog_id or "the account's own"
        return ServerInfo("AWS Glue Data Catalog", catalog=catalog, compare_and_set=self._conditions.known())

    def create_table(self, table: Table) -> None:
        """Create an external table's entry."""

        def happened() -> bool:
            found = self._find_table(table.id)
            return found is not None and outcome.says(found, table)

        self._calls.change(
            OF_NEW_TABLE,
            f"create table {table.id}",
            "create_table",
            happened,
            DatabaseName=table.id.namespace.name,
            TableInput=entries.table_input(table),
        )

    def get_table(self, table: TableId) -> Table:
        """Read an entry."""
        return entries.table_view(table, self._raw_table(table))

    def get_tables(self, namespace: NamespaceId, names: Collection[str]) -> Sequence[Table]:
        """Read entries the cheaper way: each by a call of its own, or page by page.

        Glue has no call that reads many by their names, and says nowhere how many pages a database has.
        """
        return self._many.read(
            namespace,
            {name.lower() for name in names},
            one=lambda name: self._find_table(namespace.table(name)),
            all_of_them=lambda: self._entries(namespace),
        )

    def list_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """The names of all entries that an identifier can name, read without the entries."""
        return [name for name in self._table_names(namespace) if entries.is_nameable(name)]

    def list_lance_tables(self, namespace: NamespaceId) -> Sequence[str]:
        """The names of the Lance tables, in one pass: Glue's own filter knows names only."""
        return [entry.id.name for entry in self._entries(namespace) if marks.is_lance(entry)]

    def update_table(self, table: TableId, decide: Callable[[Table], Change | None]) -> Table:
        """Change parameters by one UpdateTable under the VersionId that was read (specification: OCC).

        A foreign update in between is neither lost nor in the way: the entry is read again, and
        changed where the expectation still holds. An update whose reply is lost is recognized by what
        it set: whoever must tell his own from an equal one sets something that is his alone.

        Raises:
            ConcurrentModificationError: (14) the expectation doesn't hold, or others were always faster.
            UnsupportedOperationError: (0) there is one, and the server keeps no VersionId.
        """
        for pause in _pauses():
            raw = self._raw_table(table)
            entry = entries.table_view(table, raw)
            change = decide(entry)
            if change is None:
                return entry
            self._check(table, raw, change.expect)
            try:
                self._update(table, raw, change)
            except ConcurrentModificationError as error:
                lost = error
            else:
                return replace(entry, parameters=change.applied_to(entry.parameters))
            time.sleep(pause)
        raise ConcurrentModificationError(
            f"table {table}: others were faster in each of {_UPDATES} tries; last: {lost}"
        ) from lost

    def require_compare_and_set(self, namespace: NamespaceId) -> None:
        """Refuse (0) a server that speaks Glue and ignores VersionId; AWS itself isn't asked."""
        self._conditions.require(namespace)

    def rename_table(self, table: TableId, to: TableId) -> NoReturn:
        """Refuse: Glue can't, and a copy under the new name wouldn't be the same entry at any moment."""
        raise UnsupportedOperationError(
            f"cannot rename table {table} to {to}: Glue has no rename; register {to} with the location of "
            f"{table} and its properties, then deregister {table}: the data stays where it is"
        )

    def drop_table(self, table: TableId) -> None:
        """Drop an entry; Glue touches no file."""
        self._calls.change(
            OF_TABLE,
            f"drop table {table}",
            "delete_table",
            lambda: self._find_table(table) is None,
            DatabaseName=table.namespace.name,
            Name=table.name,
        )

    def drop_tables(
        self, namespace: NamespaceId, names: Collection[str]
    ) -> Mapping[str, LanceNamespaceError]:
        """Drop entries in batches; a batch that fails as a whole ends it, and all the rest stays."""
        failed: dict[str, LanceNamespaceError] = {}
        rest = list(names)
        while rest:
            batch = rest[:PAGE]
            try:
                failed |= self._drop_batch(namespace, batch)
            except NamespaceNotFoundError:
                return {}  # gone, with all that was in it
            except LanceNamespaceError as error:
                return failed | dict.fromkeys(rest, error)
            rest = rest[PAGE:]
        return failed

    def _raw_table(self, table: TableId) -> entries.Raw:
        place = {"DatabaseName": table.namespace.name, "Name": table.name}
        raw: entries.Raw = self._calls.read(OF_TABLE, f"read table {table}", "get_table", "Table", **place)
        return raw

    def _entries(self, namespace: NamespaceId) -> Iterator[Table]:
        attempt = f"read tables of {namespace}"
        place = {"DatabaseName": namespace.name}
        for raw in self._calls.pages(OF_NAMESPACE, attempt, "get_tables", "TableList", **place):
            if entries.is_nameable(raw["Name"]):
                yield entries.table_view(namespace.table(raw["Name"]), raw)

    def _find_table(self, table: TableId) -> Table | None:
        try:
            return self.get_table(table)
        except TableNotFoundError:
            return None

    def _check(self, table: TableId, raw: entries.Raw, expect: Expectation | None) -> None:
        if expect is None:
            return
        self.require_compare_and_set(table.namespace)
        if raw.get("VersionId") is None:
            raise UnsupportedOperationError(
                f"cannot change table {table} under a condition: its entry has no VersionId, as in catalogs "
                "that AWS federates; keep it in the account's own"
            )
        found = (raw.get("Parameters") or {}).get(expect.key)
        if found != expect.value:
            raise ConcurrentModificationError(
                f"table {table}: parameter {expect.key!r} is {found!r}, expected {expect.value!r}"
            )

    def _update(self, table: TableId, raw: entries.Raw, change: Change) -> None:
        version = raw.get("VersionId")
        arguments: dict[str, Any] = {
            "DatabaseName": table.namespace.name,
            "TableInput": entries.edited(self._calls.input_shape("TableInput"), raw, change),
            "SkipArchive": True,  # archived versions count against a quota, and nobody reads them
        }
        if version is not None:
            arguments["VersionId"] = version

        def happened() -> bool:
            found = self._raw_table(table)
            parameters = found.get("Parameters") or {}
            return found.get("VersionId") != version and outcome.stands(parameters, change)

        self._calls.change(OF_TABLE, f"change table {table}", "update_table", happened, **arguments)

    def _drop_batch(self, namespace: NamespaceId, names: Sequence[str]) -> dict[str, LanceNamespaceError]:
        attempt = f"drop {len(names)} tables of {namespace}"
        place = {"DatabaseName": namespace.name, "TablesToDelete": list(names)}
        answer = self._calls.call(OF_NAMESPACE, attempt, "batch_delete_table", **place)
        return {
            error["TableName"]: self._calls.error_of(
                error.get("ErrorDetail", {}), OF_TABLE, f"drop table {namespace.table(error['TableName'])}"
            )
            for error in answer.get("Errors", ())
            if error.get("ErrorDetail", {}).get("ErrorCode") != NOT_FOUND
        }


def _pauses() -> Iterator[float]:
    for turn in range(_UPDATES):
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**turn)
        yield random.uniform(0, longest)  # noqa: S311 - it spreads writers, and guards nothing
