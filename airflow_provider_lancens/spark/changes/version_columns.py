"""What the columns of a stream are called in the versions that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens.spark.changes.change_arguments import check_filter_at
from airflow_provider_lancens.spark.changes.columns_at import ColumnsAt
from airflow_provider_lancens.spark.table.column_history import (
    MatchedColumns,
    SchemaChange,
    VersionSchema,
    column_history,
    match_by_files,
    schema_changes,
)
from airflow_provider_lancens.spark.table.history import transactions_of

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

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
        self, target: ResolvedTable, opened: LanceDataset, schema: pa.Schema, condition: str | None
    ) -> None:
        self._target = target
        self._opened = opened
        self._schema = schema
        self._condition = condition
        self._first = self._last = opened.version
        self._columns = VersionSchema.of(opened)
        """Those of `_first`, kept since a clean-up may remove that version."""
        self._changes: list[SchemaChange] | None = []
        """Those after `_first`, up to `_last`; None if a version was cleaned up."""
        self._found: dict[tuple[int, ...], Mapping[str, str]] = {}

    def add(self, after: int, last: int, changes: Sequence[SchemaChange] | None) -> None:
        """Take the changes of columns in a range of versions, each of which follows or contains the last one.

        Args:
            after: the version before the range.
            last: the last version of the range.
            changes: the changes, oldest first; None if a version was cleaned up.
        """
        # The columns before a range aren't needed, and that version may have been cleaned up.
        first = after + 1
        if first < self._first:
            earlier = self._read(last, self._first) if last < self._first else []
            self._insert(0, changes, earlier, after=first, last=self._first)
            self._first, self._columns = first, VersionSchema.of(self._target.open(first))
        if last > self._last:
            missing = self._read(self._last, after) if after > self._last else []
            self._insert(len(self._changes or ()), missing, changes, after=self._last, last=last)
            self._last = last

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
            key = tuple(one.version for one in self._changes if lower < one.version <= upper)
            if not key:
                return None
        # Versions without a change in between have the same columns.
        if key not in self._found:
            self._found[key] = self._matched(version)
        return self._found[key]

    def _read(self, after: int, last: int) -> list[SchemaChange] | None:
        newest = self._target.open(last)
        return schema_changes(newest, transactions_of(newest, after))

    def _insert(self, position: int, *parts: Sequence[SchemaChange] | None, after: int, last: int) -> None:
        for part in reversed(parts):
            if part is None or self._changes is None:
                self._changes = None
                return
            self._changes[position:position] = [one for one in part if after < one.version <= last]

    def _matched(self, version: int) -> Mapping[str, str]:
        read = self._target.open(version)
        match = self._match(read)
        if self._condition is not None:
            check_filter_at(self._target, read, self._opened, match.names, self._condition)
        return ColumnsAt.of(str(self._target.id), version, self._schema, match).names

    def _match(self, read: LanceDataset) -> MatchedColumns:
        if self._changes is not None:
            history = column_history(self._opened, self._first, self._columns, self._changes)
            if history is not None:
                return MatchedColumns(history.match(read.version, self._opened.version))
        return match_by_files(read, self._opened)
