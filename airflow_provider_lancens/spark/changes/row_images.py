"""Read changed rows on executors: by their addresses, in the older or the newer version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from airflow_provider_lancens.spark.changes.changed_fragments import existing_fragment
from airflow_provider_lancens.spark.changes.columns_at import ColumnsAt
from airflow_provider_lancens.spark.executor_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment
    from numpy.typing import NDArray

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
LABELS = [pa.field(CHANGE_TYPE, pa.string()), pa.field(COMMIT_VERSION, pa.int64())]
"""The columns that say what happened to a row; they follow the columns of the table."""
IMAGES = pa.schema([("is_after", pa.bool_()), ("address", pa.int64()), *LABELS])
"""A changed row: in which version, its address there, and its labels."""
_BATCH_BYTES = 32 * 1024 * 1024
_BATCH_ROWS = 16_384
_FRAGMENT_BITS = 32
_SPARSE = 2
"""Rows are taken one by one if their range has more rows than this for each of them, else it is scanned."""


@dataclass(frozen=True, slots=True)
class ImageTask:
    """Read rows by their addresses, which come sorted by version and address."""

    dataset: DatasetRef
    before: ColumnsAt
    after: ColumnsAt
    filter: str | None
    """In Lance's SQL."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the row at each address, with the labels that come with it.

        Args:
            batches: changed rows, as `IMAGES`.
        """
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            sides = {False: self.before, True: self.after}
            datasets = {side: self.dataset.open(columns.version) for side, columns in sides.items()}
            opened: dict[tuple[bool, int], OpenFragment] = {}
            for batch in batches:
                for part in _by_fragment(batch):
                    side, fragment = part["is_after"][0].as_py(), part["address"][0].as_py() >> _FRAGMENT_BITS
                    if (side, fragment) not in opened:
                        found = OpenFragment.of(datasets[side], fragment, sides[side], self.filter)
                        opened = {(side, fragment): found}
                    yield from opened[side, fragment].rows(part)


@dataclass(frozen=True, slots=True)
class OpenFragment:
    """Rows of a fragment, in one version."""

    fragment: LanceFragment
    columns: ColumnsAt
    addresses: NDArray[np.int64]
    """Those of all its rows, in the order in which they are stored."""
    matching: NDArray[np.bool_]
    """Which of its rows match the filter."""
    batch_rows: int
    """How many of its rows to hold in memory at once."""

    @classmethod
    def of(cls, dataset: LanceDataset, number: int, columns: ColumnsAt, condition: str | None) -> Self:
        """Open a fragment by its id; only rows that match a condition in Lance's SQL are read."""
        fragment = existing_fragment(dataset, number)
        addresses = _all_addresses(dataset, fragment)
        matching = np.ones(len(addresses), bool)
        if condition is not None:
            matching = np.isin(addresses, _addresses(dataset, fragment, condition))
        size = sum(file.file_size_bytes or _BATCH_BYTES for file in fragment.metadata.files)
        fitting = _BATCH_BYTES * fragment.metadata.physical_rows // max(size, 1)
        return cls(fragment, columns, addresses, matching, max(1, min(fitting, _BATCH_ROWS)))

    def rows(self, wanted: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows at some addresses."""
        offsets = np.searchsorted(self.addresses, wanted["address"].to_numpy())
        chosen = self.matching[offsets]
        offsets, labels = offsets[chosen], wanted.filter(pa.array(chosen))
        for start in range(0, len(offsets), self.batch_rows):
            yield from self._labeled(
                offsets[start : start + self.batch_rows], labels.slice(start, self.batch_rows)
            )

    def _read(self, offsets: NDArray[np.int64]) -> pa.Table:
        first, span = int(offsets[0]), int(offsets[-1] - offsets[0]) + 1
        if span > _SPARSE * len(offsets):
            return self.fragment.take(offsets.tolist(), columns=self.columns.stored)
        rows = self.fragment.scanner(columns=self.columns.stored, offset=first, limit=span).to_table()
        return rows if span == len(offsets) else rows.take(pa.array(offsets - first))

    def values(self, addresses: NDArray[np.int64]) -> pa.RecordBatch:
        """Return the columns of the rows at sorted addresses, whether they match or not."""
        return self._values(np.searchsorted(self.addresses, addresses))

    def _values(self, offsets: NDArray[np.int64]) -> pa.RecordBatch:
        if self.columns.stored:
            table = self._read(offsets).combine_chunks()
            read = pa.RecordBatch.from_arrays(
                [column.combine_chunks() for column in table.columns], names=table.column_names
            )
        else:  # columns that were all added later
            read = pa.record_batch([pa.array(offsets)], names=["offset"]).select([])
        return next(iter(self.columns.batches([read])))

    def _labeled(self, offsets: NDArray[np.int64], labels: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        columns = [*self._values(offsets).columns, *(labels[field.name] for field in LABELS)]
        yield pa.RecordBatch.from_arrays(columns, schema=labeled(self.columns.schema))


def labeled(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table, and the labels."""
    return pa.schema([*schema, *LABELS])


def _all_addresses(dataset: LanceDataset, fragment: LanceFragment) -> NDArray[np.int64]:
    if fragment.metadata.num_deletions:
        return _addresses(dataset, fragment, None)
    first = fragment.fragment_id << _FRAGMENT_BITS
    return np.arange(first, first + fragment.physical_rows, dtype=np.int64)


def _addresses(dataset: LanceDataset, fragment: LanceFragment, condition: str | None) -> NDArray[np.int64]:
    scanner = dataset.scanner(columns=["_rowaddr"], fragments=[fragment], filter=condition)
    found: NDArray[np.int64] = scanner.to_table()["_rowaddr"].to_numpy().astype(np.int64)
    return found


def _by_fragment(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    fragments = batch["address"].to_numpy() >> _FRAGMENT_BITS
    sides = batch["is_after"].to_numpy(zero_copy_only=False)
    differs = (fragments[1:] != fragments[:-1]) | (sides[1:] != sides[:-1])
    limits = [0, *(np.flatnonzero(differs) + 1), batch.num_rows]
    for start, end in pairwise(limits):
        if end > start:
            yield batch.slice(start, end - start)
