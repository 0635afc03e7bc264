"""What the columns of a stream are called in the versions that it reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens.spark.changes.change_arguments import check_filter_at
from airflow_provider_lancens.spark.changes.columns_at import ColumnsAt
from airflow_provider_lancens.spark.table.column_history import (
    SchemaChange,
    VersionSchema,
    match_columns,
    schema_changes,
)

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
        condition: the condition on the rows, which must mean the same in each version; None reads all.
    """

    def __init__(
        self, target: ResolvedTable, opened: LanceDataset, schema: pa.Schema, condition: str | None
    ) -> None:
        self.schema = schema
        self._target = target
        self._opened = opened
        self._condition = condition
        self._first = self._last = opened.version
        self._changes: list[SchemaChange] | None = []
        """Those between these two versions; None if one of them was cleaned up."""
        self._found: dict[tuple[int, int], Mapping[str, str]] = {}

    def are_same_at(self, version: int) -> bool:
        """Return whether a version has the wanted columns, and those of the condition, by their names."""
        here, wanted = (VersionSchema.of(one).ids for one in (self._target.open(version), self._opened))
        if self._condition is not None:  # on any columns
            return here == wanted
        return all(here.get(name) == wanted[name] for name in self.schema.names)

    def names_in(self, versions: Collection[int]) -> dict[int, Mapping[str, str] | None]:
        """Return the name of each wanted column in each version; None where all have their own names.

        Raises:
            InvalidInputError: (13) it is unknown which columns they are, or the condition is on one that was
                added, renamed or replaced.
        """
        self._extend(min(versions), max(versions))
        return {version: self._names(version) for version in versions}

    def _extend(self, first: int, last: int) -> None:
        if first < self._first:
            self._add(schema_changes(self._target.open(self._first), first), 0)
            self._first = first
        if last > self._last:
            self._add(schema_changes(self._target.open(last), self._last), len(self._changes or ()))
            self._last = last

    def _add(self, changes: Sequence[SchemaChange] | None, position: int) -> None:
        if changes is None:
            self._changes = None
        elif self._changes is not None:
            self._changes[position:position] = changes

    def _names(self, version: int) -> Mapping[str, str] | None:
        lower, upper = sorted((version, self._opened.version))
        between = None
        if self._changes is not None:
            between = [one for one in self._changes if lower < one.version <= upper]
            if not between:
                return None
        # Versions without a change in between have the same columns.
        key = (version, 0) if between is None else (between[0].version, between[-1].version)
        if key not in self._found:
            self._found[key] = self._matched(version, between)
        return self._found[key]

    def _matched(self, version: int, changes: Sequence[SchemaChange] | None) -> Mapping[str, str]:
        read = self._target.open(version)
        match = match_columns(read, self._opened, changes)
        if self._condition is not None:
            check_filter_at(self._target, read, self._opened, match.names, self._condition)
        return ColumnsAt.matched(str(self._target.id), version, self.schema, match).names
