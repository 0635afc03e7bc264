"""Names of a stream's columns in the versions that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens.spark.changes.change_arguments import check_filter_at
from airflow_provider_lancens.spark.changes.changed_rows import ColumnsAt
from airflow_provider_lancens.spark.table.column_history import (
    SchemaChange,
    VersionSchema,
    column_history,
    match_in,
    schema_changes,
)
from airflow_provider_lancens.spark.table.history import transactions

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

    from airflow_provider_lancens.conditions import Condition
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


class VersionColumns:
    """Finds the columns of an opened version in older and newer ones, by the commits between them.

    Args:
        target: the table.
        opened: the version whose columns are wanted.
        schema: those columns, as Spark gets them.
        condition: the condition on the rows, refused for a version in which it means something else; None
            reads all.
    """

    def __init__(
        self, target: ResolvedTable, opened: LanceDataset, schema: pa.Schema, condition: Condition | None
    ) -> None:
        self._target = target
        self._opened = opened
        self._schema = schema
        self._condition = condition
        self._first = self._last = opened.version
        self._columns = VersionSchema.of(opened)
        """The columns of `_first`, kept since a clean-up may remove that version."""
        self._changes: dict[int, SchemaChange] | None = {}
        """The changes of columns after `_first`, up to `_last`, by version; None if one was cleaned up."""
        self._found: dict[tuple[int, ...], Mapping[str, str]] = {}

    def add(self, first: int, after: int, last: int, changes: Sequence[SchemaChange] | None) -> None:
        """Take the changes of columns in a range of versions.

        Args:
            first: the first version that is read.
            after: the version before the range.
            last: the last version of the range.
            changes: the changes, oldest first; None if a version was cleaned up.
        """
        self._keep(changes)
        if last < self._first:
            self._keep(self._read(last, self._first))
        if after > self._last:
            self._keep(self._read(self._last, after))
        self._last = max(self._last, last)
        # The columns before it aren't needed, and the version before it may have been cleaned up.
        if first < self._first:
            self._first, self._columns = first, VersionSchema.of(self._target.open(first))

    def names_in(self, version: int) -> Mapping[str, str] | None:
        """Return the name of each wanted column in a version; None if all have their own names.

        Raises:
            TableVersionNotFoundError: (11) it is unknown which columns they are.
            InvalidInputError: (13) the condition is on a column that was added, renamed or replaced.
        """
        if self._changes is None:
            key: tuple[int, ...] = (version,)
        else:
            lower, upper = sorted((version, self._opened.version))
            key = tuple(sorted(changed_at for changed_at in self._changes if lower < changed_at <= upper))
            if not key:
                return None
        # Versions without a change in between have the same columns.
        if key not in self._found:
            self._found[key] = self._matched(version)
        return self._found[key]

    def _read(self, after: int, last: int) -> list[SchemaChange] | None:
        # By the opened version, since the last one of the range may have been cleaned up.
        return schema_changes(self._target.open, transactions(self._opened, after, last))

    def _keep(self, changes: Sequence[SchemaChange] | None) -> None:
        if changes is None:
            self._changes = None
        elif self._changes is not None:
            self._changes.update({change.version: change for change in changes})

    def _matched(self, version: int) -> Mapping[str, str]:
        read = self._target.open(version)
        history = column_history(self._opened, self._first, self._columns, self._after_first())
        match = match_in(history, read, self._opened)
        if self._condition is not None:
            check_filter_at(self._target, read, self._opened, match.names, self._condition)
        return ColumnsAt.of(str(self._target.id), version, self._schema, match).names

    def _after_first(self) -> list[SchemaChange] | None:
        if self._changes is None:
            return None
        return [self._changes[version] for version in sorted(self._changes) if version > self._first]
