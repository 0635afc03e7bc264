"""Values of a column, such as days, in the rows that a commit wrote, replaced or deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.system_columns import ROW_ADDRESS
from airflow_provider_lancens.spark.changes.changed_rows import (
    ChangedFragment,
    ColumnsAt,
    ComparedVersions,
    changed_fragments,
)
from airflow_provider_lancens.spark.table.column_history import MatchedColumns, match_columns
from airflow_provider_lancens.spark.table.history import transactions_of
from airflow_provider_lancens.spark.table.opened_version import projected_columns
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_MOST = 1_000
"""Maximum number of partition values of a commit."""


def changed_values(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    column: str,
    *,
    after_version: int | None,
    version: int,
) -> list[str]:
    """Return the values of a column in the rows that changed between two versions, as sorted text.

    Only fragments that differ are read, and of them only this column. Null isn't among the values.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        column: a column with few values, such as a day.
        after_version: the version before; None if there was none.
        version: the version with the changes.

    Raises:
        TableColumnNotFoundError: (12) there is no such column.
        TableVersionNotFoundError: (11) a version was cleaned up, also one in between by which columns that
            were renamed or replaced would be known.
        InvalidInputError: (13) the column has more than 1,000 values.
    """
    with resolved_table(namespace, table) as target:
        after = _opened(target, version)
        schema = projected_columns(target, after.schema, [column])
        before = None if after_version is None else _opened(target, after_version)
        found: set[object] = set()
        for values in _Changed(str(target.id), after, schema).values(before):
            found.update(values.unique().to_pylist())
            if len(found) > _MOST:
                raise spec_errors.InvalidInputError(
                    f"table {target.id}: column {column!r} has more than {_MOST} values in the changed rows; "
                    "expected a column such as a day"
                )
    return sorted({str(value) for value in found if value is not None})


def _opened(target: ResolvedTable, version: int) -> LanceDataset:
    try:
        return target.open(version)
    except (OSError, ValueError) as error:
        target.check_version(version)
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id}: version {version} can't be opened"
        ) from error


@dataclass(frozen=True, slots=True)
class _Changed:
    """Reads a column of the rows that a version changed."""

    table: str
    after: LanceDataset
    schema: pa.Schema
    """The column."""

    def values(self, before: LanceDataset | None) -> Iterator[pa.Array]:
        """Yield the values since an older version; None for all."""
        if before is None:
            fragments: list[int | None] = [fragment.fragment_id for fragment in self.after.get_fragments()]
            yield from self._all(self.after, fragments, self._own)
            return
        commits = list(transactions_of(self.after, before.version))
        match = match_columns(before, self.after, commits)
        columns = self._at(before, match)
        # A row changed also if another of its columns did.
        names = {name: match.names.get(name) for name in self.after.schema.names}
        for changed in changed_fragments(ComparedVersions(before, self.after, names), commits):
            if changed.same_values:
                yield from self._deleted_or_restored(before, columns, changed)
            else:
                yield from self._all(before, [changed.before], columns)
                yield from self._all(self.after, [changed.after], self._own)

    @property
    def _own(self) -> ColumnsAt:
        return ColumnsAt.of(self.table, self.after.version, self.schema)

    def _at(self, before: LanceDataset, match: MatchedColumns) -> ColumnsAt:
        """Return the column in an older version with its type there, whose text earlier events had."""
        import pyarrow as pa

        own = ColumnsAt.of(self.table, before.version, self.schema, match)
        [name] = self.schema.names
        # An overwrite by a column of another kind has removed the rows of this one, too.
        former = own.names.get(name, name if name in match.replaced else None)
        if former not in before.schema.names or pa.types.is_nested(before.schema.field(former).type):
            return own
        return ColumnsAt.of(self.table, before.version, pa.schema([before.schema.field(former)]))

    def _all(
        self, dataset: LanceDataset, fragments: list[int | None], columns: ColumnsAt
    ) -> Iterator[pa.Array]:
        for batch in _scanned(dataset, fragments, columns):
            yield from next(iter(columns.batches([batch]))).columns

    def _deleted_or_restored(
        self, before: LanceDataset, columns: ColumnsAt, changed: ChangedFragment
    ) -> Iterator[pa.Array]:
        """Yield the values of rows that only one of the versions of a fragment has."""
        import pyarrow as pa

        old = list(_scanned(before, [changed.before], columns))
        new = list(_scanned(self.after, [changed.after], self._own))
        for side, rows, others in ((columns, old, new), (self._own, new, old)):
            addresses = (part[ROW_ADDRESS].to_numpy() for part in others)
            there = np.concatenate([np.empty(0, np.uint64), *addresses])
            for batch in rows:
                only = ~np.isin(batch[ROW_ADDRESS].to_numpy(), there)
                yield next(iter(side.batches([batch]))).column(0).filter(pa.array(only))


def _scanned(
    dataset: LanceDataset, fragments: list[int | None], columns: ColumnsAt
) -> Iterator[pa.RecordBatch]:
    wanted = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id in fragments]
    if wanted:
        scanner = dataset.scanner(columns=columns.stored, fragments=wanted, with_row_address=True)
        yield from scanner.to_batches()
