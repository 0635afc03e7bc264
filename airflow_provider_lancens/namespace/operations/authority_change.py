"""Change of a table's version authority between commits, so that no commit is lost and no table is stuck.

From the storage to the metastore:

1. The catalog table's state becomes ``converting-<token>``, by compare-and-set.
2. The gate of that token is closed beside the data. A write lists leases and gates right before it creates
   a version, so each write that lists them from now on is refused (14).
3. The leases are listed. While one is alive, the conversion is refused. If there are only dead ones, a
   version that changes nothing is committed, the barrier: the version that such a writer determined before
   step 2 exists by now, and it can create no other one.
4. The newest version is read, and becomes the metastore's by compare-and-set of that state.

From the metastore to the storage: the compare-and-set of the state refuses a commit that was prepared before,
and the gates are opened after it.

A conversion that fails sets the state back first, then opens its gate. The gate of a conversion that died
remains: the next write that is refused by it sets the state back when it is ten minutes old, so that the
conversion can't go on, opens the gate, and continues.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS, panics_as_errors
from airflow_provider_lancens.namespace.metastore_protocol import (
    CatalogTable,
    Expectation,
    Metastore,
    ParameterChange,
)
from airflow_provider_lancens.namespace.storage.conditional_writes import require_conditional_writes
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.table_links import check_links
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.namespace.storage.write_leases import (
    SILENCE,
    close_gate,
    gates_of,
    open_gate,
    open_gates,
    wait_for_writes,
)

if TYPE_CHECKING:
    from airflow_provider_lancens.namespace.operations.table_operations import TableOperations

log = logging.getLogger(__name__)

_PURPOSE = {"lancens.purpose": "change the version authority"}
_BARRIER_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class AuthorityChange:
    """Changes the version authority of tables."""

    tables: TableOperations

    def give_to_metastore(self, table: TableId) -> bool:
        """Make the metastore the version authority of a table, at the storage's newest version.

        Returns:
            False if it already was.

        Raises:
            InvalidInputError: (13) it isn't a Lance table.
            ConcurrentModificationError: (14) a write is running, or another client changed the table.
            UnsupportedOperationError: (0) the metastore can't compare-and-set.
        """
        self._metastore.require_compare_and_set(table.namespace)
        token = uuid.uuid4().hex
        begun = self._metastore.update_table(table, lambda found: _begun(found, token))
        if not begun.changed:
            return False
        files = self._files(begun.table)
        try:
            with closed_to_writes(files, token, f"table {table}: its version authority can't be changed"):
                self._metastore.update_table(table, lambda found: self._given(found, token))
        except BaseException:
            self._abandon(table, token, files)
            raise
        return True

    def settle(self, table: TableId) -> bool:
        """Open the gates of conversions that died, or that were undone.

        Returns:
            Whether the storage decides the table's versions, and no conversion is in progress.
        """
        gates = gates_of(self._files(self.tables.get(table)))  # read before the state
        catalog_table = self.tables.get(table)
        if table_properties.is_managed(catalog_table):
            return False
        if table_properties.is_converting(catalog_table):
            state = catalog_table.parameters[table_properties.STATE]
            # Drivers' clocks may differ; a wrong clock can only make the conversion fail.
            limit = datetime.now(UTC) - SILENCE
            if any(table_properties.converting_state(g.token) == state and g.closed > limit for g in gates):
                return False
            self._metastore.update_table(table, lambda now: _undone(now, state))
        open_gates(self._files(catalog_table), gates)
        return True

    def _given(self, found: CatalogTable, token: str) -> ParameterChange:
        if found.parameters.get(table_properties.STATE) != table_properties.converting_state(token):
            raise spec_errors.ConcurrentModificationError(
                f"table {found.id}: another client changed it during its conversion; run it again"
            )
        newest = str(self._files(found).newest() or 0)
        return ParameterChange(
            {
                table_properties.MANAGED_BY: table_properties.BY_IMPLEMENTATION,
                table_properties.VERSION: newest,
                table_properties.STATE: table_properties.new_state(newest),
            },
            remove=(table_properties.COMMIT,),
            expect=Expectation(table_properties.STATE, table_properties.converting_state(token)),
        )

    def _abandon(self, table: TableId, token: str, files: Manifests) -> None:
        state = table_properties.converting_state(token)
        try:
            if self._metastore.update_table(table, lambda found: _undone(found, state)).changed:
                open_gate(files, token)
        except spec_errors.LanceNamespaceError as error:
            log.warning(
                "Table %s: its conversion failed, and could not be undone; the next write does that in ten "
                "minutes: %s",
                table,
                error,
            )

    def _files(self, found: CatalogTable) -> Manifests:
        return Manifests(self.tables.location_of(found), self.tables.config.storage_options)

    @property
    def _metastore(self) -> Metastore:
        return self.tables.metastore


@contextlib.contextmanager
def closed_to_writes(files: Manifests, token: str, what: str) -> Iterator[None]:
    """Close a dataset to the writes that the storage decides; the block makes the metastore decide.

    Args:
        files: the files at its location.
        token: identifies the gate, which remains closed.
        what: what is refused while others write, for the message.

    Raises:
        ConcurrentModificationError: (14) a write is running.
    """
    close_gate(files, token)
    if wait_for_writes(files, what):
        _commit_barrier(files, what)
    yield


def _begun(found: CatalogTable, token: str) -> ParameterChange | None:
    table_properties.check_lance(found)
    if table_properties.is_managed(found):
        return None
    state = {table_properties.STATE: table_properties.converting_state(token)}
    return ParameterChange(state, expect=table_properties.unchanged(found))


def _undone(found: CatalogTable, state: str) -> ParameterChange | None:
    if found.parameters.get(table_properties.STATE) != state:
        return None
    new = {table_properties.STATE: table_properties.new_state(table_properties.BY_STORAGE)}
    return ParameterChange(new, expect=Expectation(table_properties.STATE, state))


def _commit_barrier(files: Manifests, what: str) -> None:
    """Commit a version that changes nothing; another writer's commit of that version has the same effect."""
    from lance import LanceDataset, LanceOperation, Transaction

    seen = files.newest()
    if seen is None:
        raise spec_errors.ConcurrentModificationError(
            f"{what}: a write that is presumed dead could still create its first version; write to the "
            "table, then run this again"
        )
    require_conditional_writes(files)
    check_links(files.location)
    options = snapshot(files.storage_options)
    for _ in range(_BARRIER_ATTEMPTS):
        try:
            with panics_as_errors():
                latest = LanceDataset(files.location, storage_options=options)
                barrier = Transaction(
                    latest.version, LanceOperation.UpdateConfig(), transaction_properties=_PURPOSE
                )
                LanceDataset.commit(latest, barrier, read_version=latest.version, storage_options=options)
        except LANCE_ERRORS as error:
            log.info(
                "%s: the barrier conflicts with another commit: %s", files.location, type(error).__name__
            )
        if (files.newest() or 0) > seen:
            return
    raise spec_errors.ServiceUnavailableError(
        f"{what}: no version that keeps out dead writes could be committed in {_BARRIER_ATTEMPTS} attempts; "
        "run it again"
    )
