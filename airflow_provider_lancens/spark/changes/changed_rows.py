"""Rows that differ between two versions: fragments that differ, divided among tasks, and the rows in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.system_columns import (
    ROW_ADDRESS,
    ROW_ID,
    UPDATED_AT_VERSION,
    first_address,
    fragment_of,
)
from airflow_provider_lancens.spark.blobs import is_any_blob
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.column_history import Commits, MatchedColumns, described_fields
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.history import (
    data_files,
    deletions_of,
    kept_version,
    restored_version,
    transactions_of,
)
from airflow_provider_lancens.spark.table.opened_version import projected_columns
from airflow_provider_lancens.spark.table.row_casts import conform
from airflow_provider_lancens.spark.types import arrow_schema, spark_schema

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.fragment import FragmentMetadata, LanceFragment

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


@dataclass(frozen=True, slots=True)
class ColumnsAt:
    """What to read of a version so that its rows have the columns of the newest version of a range."""

    version: int
    schema: pa.Schema
    """The columns to return."""
    names: Mapping[str, str]
    """The name in this version of each column that it has; the others are null."""

    @classmethod
    def of(cls, table: str, version: int, schema: pa.Schema, match: MatchedColumns | None = None) -> Self:
        """Take columns that were matched.

        Args:
            table: identifier of the table, for messages.
            version: the version to read.
            schema: the columns to return, as Spark gets them.
            match: where they are in this version; None if all have their own names.

        Raises:
            TableVersionNotFoundError: (11) it is unknown which columns of this version they are.
        """
        if match is None:
            return cls(version, schema, {name: name for name in schema.names})
        if unknown := sorted(match.unknown & set(schema.names)):
            raise spec_errors.TableVersionNotFoundError(
                f"table {table}: it is unknown which columns of version {version} were {unknown}: columns "
                "were renamed, replaced or dropped since, and a version in between was cleaned up; leave "
                "them out, or read the whole table"
            )
        return cls(version, schema, {name: match.names[name] for name in schema.names if name in match.names})

    @property
    def stored(self) -> list[str]:
        """The names to read of this version."""
        return list(self.names.values())

    def batches(self, read: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows with the wanted columns; further columns of the batches are left out."""
        yield from conform((self._renamed(batch) for batch in read), self.schema, cut_times=True)

    def _renamed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            batch.column(self.names[field.name])
            if field.name in self.names
            else pa.nulls(batch.num_rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, names=self.schema.names)


def readable_columns(target: ResolvedTable, newest: LanceDataset, names: Sequence[str] | None) -> pa.Schema:
    """Return the columns to read of changed rows, as Spark gets them.

    Args:
        target: the table.
        newest: the version whose columns they are.
        names: the columns; None reads all.

    Raises:
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) a column contains blobs, or Spark has no type for it.
    """
    schema = projected_columns(target, newest.schema, names)
    if blobs := [field.name for field in schema if is_any_blob(field)]:
        raise spec_errors.InvalidInputError(
            f"table {target.id}: columns: {blobs} contain blobs, which are no part of changes and streams; "
            "list the other columns: by columns=[...] of Changes.read, or the option 'columns' of a stream"
        )
    return arrow_schema(spark_schema(schema))


_Path = tuple[str, ...]
_Fields = Mapping[int, _Path]
"""The fields of the columns to read, by their ids in a version: the newest version's name of the column, and
the names inside it."""
_CHANGES_ROWS = frozenset({"Update", "Delete", "Rewrite", "Merge", "DataReplacement"})
"""Operations by which lance-spark 0.4.0 loses the versions of rows."""


class ComparedVersions(NamedTuple):
    """Two versions, and the columns to compare."""

    before: LanceDataset
    after: LanceDataset
    names: Mapping[str, str | None]
    """The name in the older version of each column of the newer one; None if it doesn't have it. Columns of a
    filter are among them, since a row that begins or ceases to match has changed."""

    @property
    def old_fields(self) -> _Fields:
        """The fields of the columns in the older version."""
        return _fields(self.before, {old: new for new, old in self.names.items() if old is not None})

    @property
    def new_fields(self) -> _Fields:
        """The fields of the columns in the newer version."""
        return _fields(self.after, {name: name for name in self.names})


@dataclass(frozen=True, slots=True)
class ChangedFragment:
    """A fragment that one of two versions lacks, or that isn't the same in both."""

    before: int | None
    """The fragment's id in the older version."""
    after: int | None
    """The fragment's id in the newer version."""
    same_values: bool = False
    """Whether both versions have the same data files for the columns, so that only deletions differ."""
    compare_values: bool = False
    """Whether rows may have other values although Lance doesn't show them as updated."""
    rows: int = 0
    """The number of its rows in both versions."""
    compared_rows: int = 0
    """About how many of these rows may have changed."""
    changed_bytes: int = 0
    """About how many bytes of the fragment, in both versions, may have changed."""

    @classmethod
    def of(cls, before: FragmentMetadata | None, after: FragmentMetadata | None, **how: bool) -> Self:
        """Describe a fragment by its metadata in both versions, None where it isn't."""
        sides = [side for side in (before, after) if side is not None]
        rows = compared = sum(side.physical_rows for side in sides)
        if how.get("same_values") and before is not None and after is not None:
            compared = abs(before.num_deletions - after.num_deletions)
        size = sum(map(_size, sides)) * compared // max(rows, 1)
        ids = [None if side is None else side.id for side in (before, after)]
        return cls(ids[0], ids[1], **how, rows=rows, compared_rows=compared, changed_bytes=size)


def changed_fragments(compared: ComparedVersions, commits: Commits) -> list[ChangedFragment]:
    """Compare the fragments of two versions, by their metadata.

    Args:
        compared: the versions.
        commits: the commits between the two.
    """
    before, after, _ = compared
    old_fields, new_fields = compared.old_fields, compared.new_fields
    old = {fragment.id: fragment for fragment in _metadata(before)}
    new = {fragment.id: fragment for fragment in _metadata(after)}
    kept = {number for number in old.keys() & new.keys() if _is_same(old[number], new[number])}
    gone, added = sorted(old.keys() - kept), sorted(new.keys() - kept)
    pairs = [
        (number, same_values)
        for number in sorted(kept)
        for same_values in [_values(old[number], old_fields) == _values(new[number], new_fields)]
        if not same_values or deletions_of(old[number]) != deletions_of(new[number])
    ]
    # Where rows may have moved, to other fragments or back by a restore, no file shows what was written.
    unsure = bool(gone or pairs) and (
        _by_path(old_fields) != _by_path(new_fields)
        or _may_lack_updates(before.version, after, commits, new_fields)
    )
    return [
        *(
            ChangedFragment.of(old[number], new[number], same_values=same, compare_values=unsure or not same)
            for number, same in pairs
        ),
        *(ChangedFragment.of(old[number], None) for number in gone),
        *(ChangedFragment.of(None, new[number], compare_values=unsure) for number in added),
    ]


def existing_fragment(dataset: LanceDataset, number: int) -> LanceFragment:
    """Return a fragment of a version by its id.

    Raises:
        ValueError: the version has no such fragment.
    """
    found = dataset.get_fragment(number)
    if found is None:
        raise ValueError(f"version {dataset.version} has no fragment {number}")
    return found


def _metadata(dataset: LanceDataset) -> Iterator[FragmentMetadata]:
    return (fragment.metadata for fragment in dataset.get_fragments())


def _is_same(old: FragmentMetadata, new: FragmentMetadata) -> bool:
    """Return whether both are one fragment, rather than two with one id, as a Restore can lead to."""
    return bool({file.path for file in old.files} & {file.path for file in new.files})


def _fields(dataset: LanceDataset, names: Mapping[str, str]) -> _Fields:
    """Return the fields of some columns, which are called otherwise in the newest version."""
    wanted = [field for field in dataset.lance_schema.fields() if field.name() in names]
    described = described_fields(wanted)
    return {
        number: (names[description.path[0]], *description.path[1:])
        for number, description in described.items()
    }


def _by_path(fields: _Fields) -> dict[_Path, int]:
    return {path: number for number, path in fields.items()}


def _values(fragment: FragmentMetadata, fields: _Fields) -> dict[_Path, object]:
    """Return where the values of each field are; fields without a file are null."""
    overlays = str(fragment.overlays or "")
    return {
        fields[number]: (number, file.path, overlays)
        for file in fragment.files
        for number in file.fields
        if number in fields
    }


def _size(fragment: FragmentMetadata) -> int:
    return sum(file.file_size_bytes or 0 for file in fragment.files)


def _may_lack_updates(after_version: int, newest: LanceDataset, commits: Commits, fields: _Fields) -> bool:
    """Return whether the versions of rows may not tell which of them were updated between two versions.

    A client may write columns without updating the rows, and lance-spark 0.4.0 loses the versions of rows,
    which are then 1. What was cleaned up may have done either, and a restore undoes both.
    """
    undone: list[int] = []
    for version, transaction in commits:
        if transaction is None or _loses_updates(newest, version, transaction, fields):
            return True
        if (restored := restored_version(transaction)) is not None:
            undone.append(restored)
    first = min(undone, default=after_version)
    if first >= after_version:
        return False
    # It is older than the range: what was done between them was undone in the range.
    last = kept_version(newest, after_version)
    return last is None or _may_lack_updates(first, last, transactions_of(last, first), fields)


def _loses_updates(dataset: LanceDataset, version: int, transaction: Transaction, fields: _Fields) -> bool:
    if _rewrites(dataset, version, transaction, fields):
        return True
    if type(transaction.operation).__name__ not in _CHANGES_ROWS:
        return False
    found = kept_version(dataset, version)
    return found is None or any(
        metadata.last_updated_at_version_meta is None for metadata in _metadata(found)
    )


def _rewrites(dataset: LanceDataset, version: int, transaction: Transaction, fields: _Fields) -> bool:
    """Return whether a transaction wrote columns of rows that exist, which updates no row to Lance."""
    operation: Any = transaction.operation
    written = set(getattr(operation, "fields_modified", None) or [])
    kind = type(operation).__name__
    if kind == "DataReplacement":
        written |= {
            number for replacement in operation.replacements for number in replacement.new_file.fields
        }
    elif kind == "Merge":  # it also adds columns without values
        files = [file for fragment in operation.fragments for file in fragment.files]
        known = _paths_at(dataset, version - 1)
        written |= {number for file in files if file.path not in known for number in file.fields}
    return not fields.keys().isdisjoint(written)


def _paths_at(dataset: LanceDataset, version: int) -> set[str]:
    """Return the paths of a version's data files; none if it was cleaned up."""
    found = kept_version(dataset, version)
    return set() if found is None else {file.path for file in data_files(found)}


_COLUMNS = [ROW_ID, ROW_ADDRESS, UPDATED_AT_VERSION]

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
    """List the rows of changed fragments in both versions, except rows that are certainly the same."""

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
    common = np.isin(rows[ROW_ID].to_numpy(), others[ROW_ID].to_numpy())
    return rows.filter(pa.array(~common))


def _labeled(rows: pa.Table, is_after: bool, compare_values: bool) -> Iterator[pa.RecordBatch]:
    for batch in rows.to_batches():
        columns = [batch.column(name).cast(pa.int64()) for name in _COLUMNS]
        flags = [pa.repeat(pa.scalar(flag), batch.num_rows) for flag in (is_after, compare_values)]
        yield pa.RecordBatch.from_arrays([*columns, *flags], schema=ADDRESSES)


LISTED_ROWS = 4_000_000
"""Rows that a task lists, by their metadata alone."""
COMPARED_ROWS = 4_000_000
"""Rows of both versions that a task compares, in about 300 MB of memory: the rows of a compacted fragment."""
READ_BYTES = 64 * 1024 * 1024
"""Bytes of changed rows that a task reads: starting one costs more than a few small fragments."""
_MOST_FRAGMENTS = 256
"""The driver reads the row ids of no more fragments than this, each in milliseconds."""
_LISTING_BYTES = 16
"""To list and compare a row takes about as long as to read this much of changed rows."""

_Positions = list[int]
"""Positions of fragments in the list of all that have changed."""


class Partition(NamedTuple):
    """Changed rows that one task lists, compares and reads."""

    fragments: tuple[int, ...]
    """Positions of fragments in the list of all that have changed: a group."""
    share: int = 0
    """Which share of the changed rows of the group it reads."""
    shares: int = 1
    """The number of shares; the task of each lists and compares all rows of the group."""


class _RowIdRange(NamedTuple):
    """The lowest and the highest row id of a fragment."""

    lowest: int
    highest: int
    position: int


def partitions_of(
    before: LanceDataset, after: LanceDataset, fragments: Sequence[ChangedFragment]
) -> list[Partition] | None:
    """Return the changed rows by groups of fragments that have no row in common with another group.

    A compaction moves the rows of neighboring fragments to one, so that groups are small. An update by
    another client moves rows to a fragment at the end, so that it has rows in common with many.

    Args:
        before: the older version.
        after: the newer version.
        fragments: the fragments that have changed.

    Returns:
        None if there are too many fragments or a group has too many rows: the rows then have to be shuffled.
    """
    everything = list(range(len(fragments)))
    if _fits(fragments):
        return _partitions(fragments, everything)
    if len(fragments) > _MOST_FRAGMENTS:
        return None
    groups = _with_common_ids(
        [_row_id_range(before, after, fragment, n) for n, fragment in enumerate(fragments)]
    )
    if not all(_fits([fragments[position] for position in group]) for group in groups):
        return None
    return [partition for group in groups for partition in _partitions(fragments, group)]


def _fits(group: Sequence[ChangedFragment]) -> bool:
    listed = sum(fragment.rows for fragment in group)
    compared = sum(fragment.compared_rows for fragment in group)
    return listed <= LISTED_ROWS and compared <= COMPARED_ROWS


def _partitions(fragments: Sequence[ChangedFragment], positions: _Positions) -> list[Partition]:
    shares = _shares([fragments[position] for position in positions])
    return [Partition(tuple(positions), share, shares) for share in range(shares)]


def _shares(group: Sequence[ChangedFragment]) -> int:
    """Return how many tasks read the changed rows of a group, each of which lists all of its rows."""
    if any(fragment.after is None for fragment in group) and any(
        fragment.before is None for fragment in group
    ):
        return 1  # most rows may only have moved
    if any(fragment.compare_values for fragment in group):
        return 1  # each would compare all values
    listing = _LISTING_BYTES * sum(fragment.rows for fragment in group)
    changed = sum(fragment.changed_bytes for fragment in group)
    return max(1, min(-(-changed // READ_BYTES), changed // max(listing, 1)))


def _row_id_range(
    before: LanceDataset, after: LanceDataset, fragment: ChangedFragment, position: int
) -> _RowIdRange:
    sides = ((before, fragment.before), (after, fragment.after))
    limits = [_limits(dataset, number) for dataset, number in sides if number is not None]
    found = [limit for limit in limits if limit is not None]
    if not found:
        return _RowIdRange(-1, -1, position)  # all of its rows are deleted
    return _RowIdRange(min(lowest for lowest, _ in found), max(highest for _, highest in found), position)


def _limits(dataset: LanceDataset, number: int) -> tuple[int, int] | None:
    fragment = existing_fragment(dataset, number)
    ids = dataset.scanner(columns=[ROW_ID], fragments=[fragment]).to_table()[ROW_ID]
    limits = pc.min_max(ids).as_py()
    return None if limits["min"] is None else (limits["min"], limits["max"])


def _with_common_ids(ids: Sequence[_RowIdRange]) -> list[_Positions]:
    """Return the positions of fragments whose ranges of ids overlap, directly or through others."""
    groups: list[_Positions] = []
    highest = -1
    for id_range in sorted(ids):
        if groups and id_range.lowest <= highest:
            groups[-1].append(id_range.position)
        else:
            groups.append([id_range.position])
        highest = max(highest, id_range.highest)
    return groups


CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
LABELS = [pa.field(CHANGE_TYPE, pa.string()), pa.field(COMMIT_VERSION, pa.int64())]
"""The columns that say what happened to a row; they follow the columns of the table."""
CHANGED_ADDRESSES = pa.schema([("is_after", pa.bool_()), ("address", pa.int64()), *LABELS])
"""A changed row: in which version, its address there, and its labels."""
_BATCH_BYTES = 32 * 1024 * 1024
_BATCH_ROWS = 16_384
_SPARSE = 2
"""Rows are taken one by one if their range has more rows than this for each of them, else it is scanned."""


@dataclass(frozen=True, slots=True)
class ChangedRowReader:
    """Read rows by their addresses, which come sorted by version and address."""

    dataset: DatasetRef
    before: ColumnsAt
    after: ColumnsAt
    filter: str | None
    """In Lance's SQL."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the row at each address, with the labels that come with it.

        Args:
            batches: changed rows, as `CHANGED_ADDRESSES`.
        """
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            sides = {False: self.before, True: self.after}
            datasets = {side: self.dataset.open(columns.version) for side, columns in sides.items()}
            opened: dict[tuple[bool, int], OpenFragment] = {}
            for batch in batches:
                for part in _by_fragment_and_side(batch):
                    side, fragment = part["is_after"][0].as_py(), fragment_of(part["address"][0].as_py())
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
    """The addresses of all its rows, in the order in which the rows are stored."""
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

    def matches(self, addresses: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the rows at sorted addresses match the filter."""
        return self.matching[np.searchsorted(self.addresses, addresses)]

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
    first = first_address(fragment.fragment_id)
    return np.arange(first, first + fragment.physical_rows, dtype=np.int64)


def _addresses(dataset: LanceDataset, fragment: LanceFragment, condition: str | None) -> NDArray[np.int64]:
    scanner = dataset.scanner(columns=[ROW_ADDRESS], fragments=[fragment], filter=condition)
    found: NDArray[np.int64] = scanner.to_table()[ROW_ADDRESS].to_numpy().astype(np.int64)
    return found


def _by_fragment_and_side(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    fragments = fragment_of(batch["address"].to_numpy())
    sides = batch["is_after"].to_numpy(zero_copy_only=False)
    differs = (fragments[1:] != fragments[:-1]) | (sides[1:] != sides[:-1])
    limits = [0, *(np.flatnonzero(differs) + 1), batch.num_rows]
    for start, end in pairwise(limits):
        if end > start:
            yield batch.slice(start, end - start)


_MOST_ROWS = 16_384
"""Rows that are compared at once, fewer if they are large."""

_Mask = NDArray[np.bool_]
_Addresses = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ValueComparison:
    """Compares rows of two versions by their values, as readers of the newer one get them. Picklable."""

    dataset: DatasetRef
    before: ColumnsAt
    after: ColumnsAt
    filter: str | None
    """In Lance's SQL. Rows of which only one version matches differ, whatever columns are read."""

    def differ(self, before: _Addresses, after: _Addresses) -> _Mask:
        """Return which rows aren't equal.

        Args:
            before: the addresses of rows in the older version.
            after: the addresses of the same rows in the newer one.
        """
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            old, new = (_RowsAt(self.dataset, columns, self.filter) for columns in (self.before, self.after))
            differs = np.zeros(len(after), bool)
            order, start = np.argsort(after), 0
            while start < len(order):
                size = min(
                    _MOST_ROWS, old.batch_rows(before[order[start]]), new.batch_rows(after[order[start]])
                )
                chosen = order[start : start + size]
                differs[chosen] = ~same_rows(old.values(before[chosen]), new.values(after[chosen]))
                if self.filter is not None:
                    differs[chosen] |= old.matching(before[chosen]) != new.matching(after[chosen])
                start += size
        return differs


class _RowsAt:
    """Rows of one version by their addresses, in any order."""

    def __init__(self, dataset: DatasetRef, columns: ColumnsAt, condition: str | None) -> None:
        self._dataset = dataset.open(columns.version)
        self._columns = columns
        self._condition = condition
        self._opened: dict[int, OpenFragment] = {}

    def batch_rows(self, address: np.int64) -> int:
        """Return how many rows like the one at an address to hold in memory at once."""
        return self._fragment(fragment_of(int(address))).batch_rows

    def values(self, addresses: _Addresses) -> pa.Table:
        """Return the rows at these addresses."""
        order = np.argsort(addresses)
        parts = [self._fragment(number).values(chosen) for number, chosen in _by_fragment(addresses[order])]
        return pa.Table.from_batches(parts).take(pa.array(np.argsort(order)))

    def matching(self, addresses: _Addresses) -> _Mask:
        """Return which of the rows at these addresses match the filter."""
        order = np.argsort(addresses)
        parts = [self._fragment(number).matches(chosen) for number, chosen in _by_fragment(addresses[order])]
        found: _Mask = np.concatenate(parts)[np.argsort(order)]
        return found

    def _fragment(self, number: int) -> OpenFragment:
        if number not in self._opened:
            self._opened[number] = OpenFragment.of(self._dataset, number, self._columns, self._condition)
        return self._opened[number]


def _by_fragment(addresses: _Addresses) -> Iterator[tuple[int, _Addresses]]:
    fragments = fragment_of(addresses)
    limits = np.flatnonzero(np.diff(fragments)) + 1
    for part in np.split(addresses, limits):
        yield fragment_of(int(part[0])), part


def same_rows(before: pa.Table, after: pa.Table) -> _Mask:
    """Return which rows of two tables with the same columns are equal, two nulls and two NaNs too."""
    same = np.ones(before.num_rows, bool)
    for left, right in zip(before.columns, after.columns, strict=True):
        same &= _same(_combined(left), _combined(right))
    return same


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _same(left: pa.Array, right: pa.Array) -> _Mask:
    if isinstance(left, pa.ExtensionArray):
        return _same(left.storage, right.storage)
    nulls, other_nulls = (_mask(array.is_null()) for array in (left, right))
    there = ~nulls & ~other_nulls
    same = nulls & other_nulls
    if there.any():
        chosen = pa.array(there)
        same[there] = _same_values(left.filter(chosen), right.filter(chosen))
    return same


def _same_values(left: Any, right: Any) -> _Mask:
    """Compare values that aren't null."""
    kind = left.type
    if pa.types.is_struct(kind):
        same = np.ones(len(left), bool)
        for number in range(kind.num_fields):
            same &= _same(pc.struct_field(left, number), pc.struct_field(right, number))
        return same
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _same_lists(left, right)
    if pa.types.is_fixed_size_list(kind):
        same = _same(left.flatten(), right.flatten())
        rows: _Mask = np.all(same.reshape(len(left), kind.list_size), axis=1)
        return rows
    if pa.types.is_null(kind):
        return np.ones(len(left), bool)
    equal = _mask(pc.equal(left, right))
    if pa.types.is_floating(kind):
        equal |= _mask(pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return equal


def _same_lists(left: Any, right: Any) -> _Mask:
    lengths, other_lengths = (np.diff(array.offsets.to_numpy()) for array in (left, right))
    same = lengths == other_lengths
    if same.any():
        chosen, lengths = pa.array(same), lengths[same]
        left, right = (_elements(array.filter(chosen)) for array in (left, right))
        wrong = ~_same(left, right)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        same[same] = np.bincount(rows[wrong], minlength=len(lengths)) == 0
    result: _Mask = same
    return result


def _elements(array: Any) -> pa.Array:
    if pa.types.is_map(array.type):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        entries = [part[start:end] for part in (array.keys, array.items)]
        return pa.StructArray.from_arrays(entries, names=["key", "value"])
    return array.flatten()


def _mask(array: pa.Array) -> _Mask:
    mask: _Mask = array.to_numpy(zero_copy_only=False).astype(bool)
    return mask


_ANSWER_ROWS = 65_536
_DENSE = 8
"""Ids whose range has at most this many for each of them are found by a table."""


@dataclass(frozen=True, slots=True)
class ComparisonTask:
    """Compare the rows of both versions; rows with the same id must come to the same task."""

    after_version: int
    """The older version."""
    is_staged: bool
    """Whether the newer version is staged, so that it has no number that its rows could be labeled with."""
    values: ValueComparison
    """Compares rows whose versions don't tell whether they changed."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the addresses of the rows that aren't the same, as `CHANGED_ADDRESSES`.

        Args:
            batches: rows of both versions, as `ADDRESSES`.
        """
        rows = pa.Table.from_batches(batches, schema=ADDRESSES)
        before, after = (_Side.of(rows.filter(chosen)) for chosen in _sides(rows))
        del rows
        old, new = _common(before.ids, after.ids)
        deleted, inserted = _others(before.ids, old), _others(after.ids, new)
        updated = before.updated[old] != after.updated[new]
        unsure = after.compare_values[new]
        if unsure.any():
            addresses = (before.addresses[old[unsure]], after.addresses[new[unsure]])
            updated[unsure] = self.values.differ(*addresses)
        old, new, made_by = old[updated], new[updated], self._made_by(after)
        for changed in (
            _changed_addresses(
                "delete", False, before.addresses[deleted], pa.nulls(len(deleted), pa.int64())
            ),
            _changed_addresses("update_preimage", False, before.addresses[old], made_by.take(pa.array(new))),
            _changed_addresses("update_postimage", True, after.addresses[new], made_by.take(pa.array(new))),
            _changed_addresses("insert", True, after.addresses[inserted], made_by.take(pa.array(inserted))),
        ):
            yield from changed.to_batches(_ANSWER_ROWS)

    def _made_by(self, after: _Side) -> pa.Array:
        unknown = self.is_staged | (after.updated <= self.after_version)
        return pa.array(after.updated, mask=unknown)


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """List, compare and read partitions, whose fragments have no row in common with others."""

    listing: AddressTask
    comparison: ComparisonTask
    reader: ChangedRowReader
    partitions: Sequence[Partition]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows of the partitions at the positions in `batches`."""
        for batch in batches:
            for position in batch.column(0).to_pylist():
                yield from self.reader.run(self._changed(self.partitions[position]))

    def _changed(self, partition: Partition) -> Iterator[pa.RecordBatch]:
        changed = self.comparison.run(self.listing.list(partition.fragments))
        table = pa.Table.from_batches(changed, schema=CHANGED_ADDRESSES)
        start, end = (
            table.num_rows * share // partition.shares for share in (partition.share, partition.share + 1)
        )
        ordered = table.sort_by([("is_after", "ascending"), ("address", "ascending")])
        yield from ordered.slice(start, end - start).to_batches(_ANSWER_ROWS)


@dataclass(frozen=True, slots=True)
class _Side:
    """The rows of one version."""

    ids: NDArray[np.int64]
    addresses: NDArray[np.int64]
    updated: NDArray[np.int64]
    """The version that last updated each row; 0 if Lance doesn't know it."""
    compare_values: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: pa.Table) -> _Side:
        return cls(
            rows["row_id"].to_numpy(),
            rows["address"].to_numpy(),
            rows["updated"].fill_null(0).to_numpy(),
            rows["compare_values"].to_numpy(),
        )


def _sides(rows: pa.Table) -> tuple[Any, Any]:
    is_after = rows["is_after"].to_numpy()
    return pa.array(~is_after), pa.array(is_after)


def _common(before: NDArray[np.int64], after: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the positions of the ids that are in both, in the order of the later ones."""
    if not len(before) or not len(after):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lowest = int(np.min(before))
    span = int(np.max(before)) - lowest + 1
    if span > _DENSE * len(before):
        _, old, new = np.intersect1d(before, after, assume_unique=True, return_indices=True)
        return old, new
    # Ids are mostly consecutive, for which a table of positions is ten times as fast as a sort.
    table = np.full(span, -1, np.int32)
    table[before - lowest] = np.arange(len(before), dtype=np.int32)
    within = np.flatnonzero((after >= lowest) & (after < lowest + span))
    positions = table[after[within] - lowest]
    return positions[positions >= 0], within[positions >= 0]


def _others(ids: NDArray[np.int64], common: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all positions of ids except the positions in `common`."""
    others = np.ones(len(ids), bool)
    others[common] = False
    return np.flatnonzero(others)


def _changed_addresses(
    change_type: str, is_after: bool, addresses: NDArray[np.int64], made_by: pa.Array
) -> pa.Table:
    side, kind = (pa.repeat(pa.scalar(label), len(addresses)) for label in (is_after, change_type))
    return pa.Table.from_arrays([side, pa.array(addresses), kind, made_by], schema=CHANGED_ADDRESSES)
