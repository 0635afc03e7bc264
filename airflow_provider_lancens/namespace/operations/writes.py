"""Writes that a table's entry remembers, beside the specification: looked up, and noted afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from lance_namespace.errors import ConcurrentModificationError, UnsupportedOperationError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.metastore import Change, Expectation, Table
from airflow_provider_lancens.namespace.operations.tables import TableOperations
from airflow_provider_lancens.namespace.writes import Write, digest, noted, writes_of

_TRIES = 20


@dataclass(frozen=True, slots=True)
class WriteOperations:
    """Operations on the writes that entries remember, over any metastore."""

    tables: TableOperations

    def find(self, table: TableId, key: str) -> Write | None:
        """The write under an idempotency key; 4, 13, 19."""
        name = digest(key)
        return next((write for write in writes_of(self.tables.get(table)) if write.key == name), None)

    def note(self, table: TableId, write: Write) -> None:
        """Add a write to those that the entry remembers, until it is read back; 4, 14, 19.

        A managed table's commits bring their own. Two notes beside them at the same moment, or the first two
        of a table on Hive, have nothing to compare: one may be lost, until its write is run again.
        """
        for _ in range(_TRIES):
            if not self._add(table, write):
                return
        raise ConcurrentModificationError(f"table {table}: others were faster in each of {_TRIES} tries")

    def _add(self, table: TableId, write: Write) -> bool:
        """Whether there was something to change; it may have been somebody else's turn."""
        try:
            return self._change(table, write, conditional=True)
        except ConcurrentModificationError:
            return True
        except UnsupportedOperationError:
            # A server that can't compare. What gets lost between two drivers is noticed by reading back.
            return self._change(table, write, conditional=False)

    def _change(self, table: TableId, write: Write, *, conditional: bool) -> bool:
        changes: list[Change] = []

        def decide(entry: Table) -> Change | None:
            parameters = noted(entry, write)
            if not parameters:
                return None
            expect = _unchanged(entry) if conditional else None
            changes.append(Change(parameters, expect=expect))
            return changes[-1]

        self.tables.metastore.update_table(table, decide)
        return bool(changes)


def _unchanged(entry: Table) -> Expectation | None:
    # On a managed table the backend guards the version instead: a server compares one parameter, and a
    # note must never take a commit back.
    if marks.is_managed(entry) or marks.WRITES not in entry.parameters:
        return None
    return Expectation(marks.WRITES, entry.parameters[marks.WRITES])
