"""Finds the rows of a table that others have written or deleted since an older version: rows, not files.

A compaction, or a writer that rewrites rows as they are, moves rows to other files. Such rows are found by
their values, which are read only for rows that matter to a commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens.namespace.system_columns import ROW_ADDRESS, fragment_of
from airflow_provider_lancens.spark.blobs import is_blob
from airflow_provider_lancens.spark.table.history import deletions_of, kept_version

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment
    from numpy.typing import NDArray

    from airflow_provider_lancens.spark.table.row_hashes import Hashes


@dataclass(frozen=True, slots=True)
class RowDifference:
    """The rows that are in the files of only one of two versions, or deleted in only one of them."""

    written: pa.Table
    """Rows of the newer version, with their addresses: others wrote them, moved them to other files, changed
    one of their columns, or brought them back by a restore."""
    deleted: pa.Table
    """Rows of the older version, with their addresses."""
    _before: _ComparedVersion
    _after: _ComparedVersion

    def count_differing(self, written: pa.Table, deleted: pa.Table) -> tuple[int, int]:
        """Return how many of some rows are in one version alone, rather than with the same values in both.

        Args:
            written: some of `written`.
            deleted: the rows of `deleted` that they may equal.
        """
        if not written.num_rows or not deleted.num_rows:
            return written.num_rows, deleted.num_rows
        new, old = self._after.hashes(written), self._before.hashes(deleted)
        if new is None or old is None:
            return written.num_rows, deleted.num_rows
        return _more(new, old), _more(old, new)


@dataclass(frozen=True, slots=True)
class _ComparedVersion:
    """One of the two versions."""

    dataset: LanceDataset
    fragments: Sequence[LanceFragment]
    """The fragments that differ from the other version's fragments."""

    def read(self, columns: Sequence[str], condition: str | None) -> pa.Table:
        """Return columns and the addresses of the rows that match a condition."""
        if not self.fragments:
            fields = [self.dataset.schema.field(name) for name in columns]
            return pa.schema([*fields, pa.field(ROW_ADDRESS, pa.uint64())]).empty_table()
        scanner = self.dataset.scanner(
            columns=list(columns), fragments=list(self.fragments), filter=condition, with_row_address=True
        )
        return scanner.to_table().select([*columns, ROW_ADDRESS])

    def hashes(self, rows: pa.Table) -> Hashes | None:
        """Return a hash of all values of each row; None if some can't be compared.

        Of a blob, a scan reads only where its bytes are.
        """
        from airflow_provider_lancens.spark.table.row_hashes import row_hashes

        names = self.dataset.schema.names
        if any(is_blob(field.type) for field in self.dataset.schema):
            return None
        chosen = _addresses(rows)
        wanted = set(np.unique(fragment_of(chosen)).tolist())
        fragments = [fragment for fragment in self.fragments if fragment.fragment_id in wanted]
        scanner = self.dataset.scanner(columns=names, fragments=fragments, with_row_address=True)
        found = [np.empty(0, np.uint64)]
        for batch in scanner.to_batches():
            of_rows = batch.filter(pa.array(np.isin(_addresses(batch), chosen)))
            if [field.type for field in of_rows.select(names).schema] != self.dataset.schema.types:
                return None
            try:
                found.append(row_hashes(of_rows.select(names).columns, of_rows.num_rows))
            except pa.ArrowNotImplementedError:
                return None
        return np.concatenate(found)


def changed_rows(
    latest: LanceDataset, base: int, columns: Sequence[str], condition: str | None = None
) -> RowDifference | None:
    """Return the rows whose files or deletions have changed since an older version; None if it isn't kept.

    Args:
        latest: the newer version.
        base: the older one.
        columns: the columns to read, which both have.
        condition: the condition on the rows, in Lance's SQL dialect; None returns all.
    """
    before = kept_version(latest, base)
    if before is None:
        return None
    both = [
        {_identity(fragment): fragment for fragment in version.get_fragments()}
        for version in (before, latest)
    ]
    old, new = (
        [fragment for known, fragment in side.items() if known not in other]
        for side, other in (both, both[::-1])
    )
    same_files = [
        fragment
        for fragment, _ in {_files(fragment) for fragment in old} & {_files(fragment) for fragment in new}
    ]
    sides = _ComparedVersion(before, old), _ComparedVersion(latest, new)
    rows_before, rows_after = (side.read(columns, condition) for side in sides)
    return RowDifference(
        written=_only(rows_after, rows_before, same_files),
        deleted=_only(rows_before, rows_after, same_files),
        _before=sides[0],
        _after=sides[1],
    )


def _addresses(rows: pa.Table | pa.RecordBatch) -> NDArray[np.int64]:
    addresses: NDArray[np.int64] = rows.column(ROW_ADDRESS).to_numpy().astype(np.int64)
    return addresses


def _only(rows: pa.Table, others: pa.Table, same_files: Sequence[int]) -> pa.Table:
    """Return the rows that aren't among others of the fragments that have the same files in both versions."""
    fragments = pa.array(fragment_of(_addresses(others)))
    same = pc.is_in(fragments, value_set=pa.array(same_files, pa.int64()))
    known = pc.is_in(rows[ROW_ADDRESS], value_set=others[ROW_ADDRESS].filter(same))
    return rows.filter(pc.invert(known))


def _more(some: Hashes, others: Hashes) -> int:
    """Return how many of some values are not among others, each counted as often as it is there."""
    values, counts = np.unique(some, return_counts=True)
    other_values, other_counts = np.unique(others, return_counts=True)
    _, here, there = np.intersect1d(values, other_values, assume_unique=True, return_indices=True)
    common = np.minimum(counts[here], other_counts[there]).sum()
    return int(counts.sum() - common)


def _identity(fragment: LanceFragment) -> tuple[object, ...]:
    return *_files(fragment), deletions_of(fragment.metadata)


def _files(fragment: LanceFragment) -> tuple[int, tuple[object, ...]]:
    """Return a fragment's id, and its data files with the ids of the columns for which each is used."""
    files = ((file.path, tuple(file.fields)) for file in fragment.metadata.files)
    return fragment.fragment_id, tuple(sorted(files))
