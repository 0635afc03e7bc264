"""Where the rows of changed fragments are: found on executors, in the metadata of the rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airflow_provider_lancens.spark.changes.changed_fragments import ChangedFragment, existing_fragment
from airflow_provider_lancens.spark.executor_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef

if TYPE_CHECKING:
    from lance import LanceDataset

_UPDATED = "_row_last_updated_at_version"
_COLUMNS = ["_rowid", "_rowaddr", _UPDATED]

ADDRESSES = pa.schema(
    {
        "row_id": pa.int64(),
        "address": pa.int64(),
        "updated": pa.int64(),
        "is_after": pa.bool_(),
        "compare_values": pa.bool_(),
    }
)
"""A row of one of the two versions: its stable id, its address, the version that last updated it, and whether
only its values tell whether it changed."""


@dataclass(frozen=True, slots=True)
class AddressTask:
    """List the rows of changed fragments in both versions, except those that are certainly the same."""

    dataset: DatasetRef
    before: int
    after: int
    fragments: Sequence[ChangedFragment]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """List the rows of the fragments at the positions in `batches`."""
        for batch in batches:
            yield from self.list(batch.column(0).to_pylist())

    def list(self, positions: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """List the rows of the fragments at these positions."""
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            before, after = self.dataset.open(self.before), self.dataset.open(self.after)
            for position in positions:
                yield from _rows(before, after, self.fragments[position])


def _rows(before: LanceDataset, after: LanceDataset, fragment: ChangedFragment) -> Iterator[pa.RecordBatch]:
    old, new = _read(before, fragment.before), _read(after, fragment.after)
    if fragment.same_values:
        # Of a fragment with the same files, rows were deleted, or came back by a Restore.
        old, new = _without(old, new), _without(new, old)
    for table, is_after in ((old, False), (new, True)):
        yield from _labeled(table, is_after, fragment.compare_values)


def _read(dataset: LanceDataset, fragment: int | None) -> pa.Table:
    if fragment is None:
        return pa.table({name: pa.array([], pa.uint64()) for name in _COLUMNS})
    return dataset.scanner(columns=_COLUMNS, fragments=[existing_fragment(dataset, fragment)]).to_table()


def _without(rows: pa.Table, others: pa.Table) -> pa.Table:
    common = np.isin(rows["_rowid"].to_numpy(), others["_rowid"].to_numpy())
    return rows.filter(pa.array(~common))


def _labeled(rows: pa.Table, is_after: bool, compare_values: bool) -> Iterator[pa.RecordBatch]:
    for batch in rows.to_batches():
        columns = [batch.column(name).cast(pa.int64()) for name in _COLUMNS]
        flags = [pa.repeat(pa.scalar(flag), batch.num_rows) for flag in (is_after, compare_values)]
        yield pa.RecordBatch.from_arrays([*columns, *flags], schema=ADDRESSES)
