"""Changes of upserts and overwrites with `on`, and the commits of others that conflict with them.

Both replace rows by the values of their key columns. Also here: which columns can be keys, and when two
values are the same key, since equal numbers may have different bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.spark.blobs import is_blob
from airflow_provider_lancens.spark.commit.table_change import CommitStep, TableChange
from airflow_provider_lancens.spark.keys import (
    REPLACE_VALUES,
    UPSERT,
)
from airflow_provider_lancens.spark.table.history import data_changed
from airflow_provider_lancens.spark.table.row_difference import changed_rows

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset

    from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef


@dataclass(frozen=True, slots=True)
class UpsertCommit(TableChange):
    """Remove the rows that have one of these keys, and add the fragments, in one commit."""

    KIND = UPSERT
    DELETIONS_CONFLICT: ClassVar[bool] = True
    """Whether a row that others delete matters to rows that were chosen by comparing them with it."""

    keys: pa.Table = field(repr=False)
    compared: bool = False
    """Whether the fragments were chosen by comparing them with the rows of version `base`."""
    deletions: pa.Table | None = field(default=None, repr=False)
    """The keys whose rows are deleted and not replaced, as `comparable_keys` has them; None without any."""

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: the rows to remove are determined again, also other writers' rows."""
        if latest is None:
            return self._first_version()._replace(updated=0, deleted=0)
        self.check_same_columns(latest)
        if self.compared and self.base is not None:
            self._check_not_written_since(latest, self.base)
        return self._merged(latest)

    def _check_not_written_since(self, latest: LanceDataset, base: int) -> None:
        """Check that nobody has written or deleted a row with one of the keys, which was then not compared.

        A restore that brings a row back writes it, too. A row that others rewrote as it is wasn't written.

        Raises:
            ConcurrentModificationError: (14) somebody has, or the version that was compared is gone.
        """
        if not data_changed(latest, base):
            return
        names = self.keys.column_names
        changed = changed_rows(latest, base, names)
        if changed is None:
            raise self._conflict(f"version {base} was cleaned up")
        with_keys = (self._with_keys(rows) for rows in (changed.written, changed.deleted))
        written, deleted = changed.count_differing(*with_keys)
        if written:
            raise self._conflict(f"other writers wrote rows with the same {', '.join(names)}")
        if deleted and self.DELETIONS_CONFLICT:
            raise self._conflict(f"other writers deleted rows with the same {', '.join(names)}")

    def _with_keys(self, rows: pa.Table) -> pa.Table:
        """Return the rows that have one of the keys."""
        names = self.keys.column_names
        others = [name for name in rows.column_names if name not in names]
        theirs = comparable_keys(rows.select(names).cast(self.keys.schema))
        for name in others:
            theirs = theirs.append_column(rows.field(name), rows[name])
        return theirs.join(self.keys, names, join_type="left semi") if rows.num_rows else theirs

    def _merged(self, latest: LanceDataset) -> CommitStep:
        from lance import LanceOperation

        merge = latest.merge_insert(self.keys.column_names).when_matched_delete()
        transaction, counts = merge.execute_uncommitted(stored_keys(self.keys, latest))
        matched: Any = transaction.operation
        removed = int(counts["num_deleted_rows"])
        deleted = self._deleted_rows(latest, removed)
        operation = LanceOperation.Update(
            removed_fragment_ids=matched.removed_fragment_ids,
            updated_fragments=matched.updated_fragments,
            new_fragments=list(self.fragments),
            # No update mode: with it, Lance counts the new fragments as covered by each index on other
            # columns, or panics.
        )
        return CommitStep(operation, latest.version, updated=removed - deleted, deleted=deleted)

    def _deleted_rows(self, latest: LanceDataset, removed: int) -> int:
        """Return how many of the removed rows are only deleted."""
        if self.deletions is None or not removed:
            return 0
        if not self.fragments:
            return removed
        names = self.keys.column_names
        keys = stored_keys(self.deletions, latest)
        batches = latest.scanner(columns=names).to_batches()
        stored = (pa.Table.from_batches([batch]).select(names).cast(keys.schema) for batch in batches)
        return sum(rows.join(keys, names, join_type="left semi").num_rows for rows in stored)


@dataclass(frozen=True, slots=True)
class ReplaceValuesCommit(UpsertCommit):
    """Remove the rows that have the values of new ones in some columns, and add the fragments, in one commit.

    Unlike an upsert's, the values may be in several rows, of the table and of the fragments.
    """

    KIND = REPLACE_VALUES
    DELETIONS_CONFLICT = False

    compared: bool = True
    """Rows that others wrote with these values since `base` conflict, since they would be removed."""

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: the rows to remove are determined again."""
        step = UpsertCommit.apply_to(self, latest)  # `super()` doesn't work in a dataclass with slots
        return step._replace(updated=None, deleted=(step.updated or 0) + (step.deleted or 0))


def check_keys(on: Sequence[str], schema: pa.Schema, table: str) -> None:
    """Check that these columns can be used as upsert keys.

    Raises:
        InvalidInputError: (13) a column doesn't exist, is named twice, or has a type that cannot be a key.
    """
    if len(set(on)) < len(on):
        raise spec_errors.InvalidInputError(f"table {table}: on: a column is listed twice in {list(on)}")
    for name in on:
        if name not in schema.names:
            raise spec_errors.InvalidInputError(
                f"table {table}: on: column {name!r} does not exist; columns: {schema.names}"
            )
        if '"' in name:
            raise spec_errors.InvalidInputError(
                f"table {table}: on: Lance cannot match rows by column {name!r}, whose name "
                "contains a double quote; rename it, or upsert by other columns"
            )
        arrow = schema.field(name).type
        if pa.types.is_nested(arrow) or pa.types.is_null(arrow) or is_blob(arrow):
            raise spec_errors.InvalidInputError(
                f"table {table}: on: column {name!r} is {arrow}, which cannot be a key; expected columns of "
                "non-nested types, except blobs"
            )


_BATCH_ROWS = 64 * 1024
_EXAMPLES = 3


def read_keys(
    dataset: DatasetRef,
    fragments: Sequence[FragmentMetadata],
    schema: pa.Schema,
    deleted: pa.Table | None,
    table: str,
    compared: LanceDataset | None = None,
    *,
    unique: bool = True,
) -> pa.Table:
    """Read the keys of fragments that aren't committed yet, and add the keys that are deleted.

    Args:
        dataset: the dataset they were written to.
        fragments: the fragments.
        schema: the key columns.
        deleted: keys of other rows, which are deleted.
        table: the table's name, for messages.
        compared: the version whose rows the fragments have values of, which may have a key twice.
        unique: whether a key may be in one row only; otherwise each is returned once.

    Returns:
        The keys, as `comparable_keys` has them.

    Raises:
        InvalidInputError: (13) two rows have the same key, or a key is null.
    """
    files = [file.path for fragment in fragments for file in fragment.files]
    batches = [batch for path in files for batch in _read_batches(dataset, path, schema)]
    keys = pa.Table.from_batches(batches, schema)
    if deleted is not None:
        keys = pa.concat_tables([keys, deleted])
    _check_not_null(keys, table)
    keys = comparable_keys(keys)
    if not unique:
        return keys.group_by(keys.column_names).aggregate([]).cast(keys.schema)
    _check_unique(keys, table, compared)
    return keys


def _read_batches(dataset: DatasetRef, path: str, schema: pa.Schema) -> list[pa.RecordBatch]:
    from lance.file import LanceFileReader

    reader = LanceFileReader(
        f"{dataset.location}/data/{path}", snapshot(dataset.storage_options) or None, columns=schema.names
    )
    batches = reader.read_all(batch_size=_BATCH_ROWS).to_batches()
    return [batch.select(schema.names).cast(schema) for batch in batches]


def _check_not_null(keys: pa.Table, table: str) -> None:
    with_nulls = [name for name in keys.column_names if keys[name].null_count]
    if with_nulls:
        raise spec_errors.InvalidInputError(
            f"table {table}: on: {', '.join(with_nulls)} is null in {keys[with_nulls[0]].null_count} rows "
            "of the source, which cannot match any row; filter those rows out; nothing was "
            "committed"
        )


def comparable_keys(keys: pa.Table) -> pa.Table:
    """Return keys in which equal numbers have equal bits, as Spark compares them.

    Lance and Arrow compare floating-point numbers by their bits: -0.0 isn't 0.0, and there are many NaNs.
    """
    for number in _floats(keys):
        column = keys.column(number)
        zeros, nans = _zeros_and_nans(column)
        bits = _BITS[column.type]  # compared as integers, since older Arrow's if_else lacks float16
        zero, nan = (_numbers(value, column.type).view(bits)[0] for value in (0.0, math.nan))
        chosen = pc.if_else(zeros, zero, pc.if_else(nans, nan, _viewed(column, bits)))
        keys = keys.set_column(number, keys.schema.field(number), _viewed(chosen, column.type))
    return keys


def stored_keys(keys: pa.Table, dataset: LanceDataset) -> pa.Table:
    """Return comparable keys with the other bits that the same keys may have in a dataset."""
    for number in _floats(keys):
        column = keys.column(number)  # includes the keys added for previous columns
        name, kind = keys.column_names[number], column.type
        variants = []
        zeros, nans = _zeros_and_nans(column)
        if pc.any(zeros).as_py():
            variants.append((zeros, _numbers(-0.0, kind)))
        if pc.any(nans).as_py():
            variants.append((nans, _stored_nans(dataset, name, kind)))
        added = [
            rows.set_column(number, keys.schema.field(number), pa.repeat(value, rows.num_rows))
            for chosen, values in variants
            for rows in [keys.filter(chosen)]
            for value in values
        ]
        keys = pa.concat_tables([keys, *added])
    return keys


_BITS = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def _floats(keys: pa.Table) -> list[int]:
    return [number for number, arrow in enumerate(keys.schema.types) if arrow in _BITS]


def _numbers(value: float, kind: pa.DataType) -> pa.Array:
    return pa.array([value], pa.float32()).cast(kind)


def _viewed(column: pa.ChunkedArray, arrow: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([chunk.view(arrow) for chunk in column.chunks], arrow)


def _zeros_and_nans(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    comparable = column.cast(pa.float32()) if column.type == pa.float16() else column
    return pc.equal(comparable, pa.scalar(0.0, comparable.type)), pc.is_nan(comparable)


def _stored_nans(dataset: LanceDataset, name: str, kind: pa.DataType) -> pa.Array:
    """Return the NaNs of a column with other bits than `comparable_keys` has."""
    bits = _BITS[kind]
    quoted = name.replace("`", "``")
    found = dataset.scanner(columns=[name], filter=f"isnan(`{quoted}`)").to_table().column(0)
    usual = _numbers(math.nan, kind).view(bits)
    others = pc.unique(pa.concat_arrays([pa.array([], kind), *found.cast(kind).chunks]).view(bits))
    return others.filter(pc.invert(pc.is_in(others, value_set=usual))).view(kind)


def _check_unique(keys: pa.Table, table: str, compared: LanceDataset | None = None) -> None:
    counts = keys.group_by(keys.column_names).aggregate([([], "count_all")])
    # By position: a key column may have the count's name.
    duplicates = counts.filter(pc.greater(counts.column(counts.num_columns - 1), 1))
    if duplicates.num_rows:
        if compared is not None:
            _check_unique_in_table(duplicates.select(range(len(keys.column_names))), compared, table)
        examples = duplicates.select(range(len(keys.column_names))).slice(0, _EXAMPLES).to_pylist()
        raise spec_errors.InvalidInputError(
            f"table {table}: on: {duplicates.num_rows} keys are in more than one row of the source, "
            f"such as {', '.join(map(str, examples))}; keep one row of each; nothing was committed"
        )


def _check_unique_in_table(keys: pa.Table, compared: LanceDataset, table: str) -> None:
    """Check that a table has each of these keys once, to whose row the others of an update refer."""
    names = keys.column_names
    stored = comparable_keys(compared.scanner(columns=names).to_table().select(names).cast(keys.schema))
    found = stored.join(keys, names, join_type="left semi")
    counts = found.group_by(names).aggregate([([], "count_all")])
    repeated = counts.filter(pc.greater(counts.column(counts.num_columns - 1), 1))
    if repeated.num_rows:
        examples = repeated.select(range(len(names))).slice(0, _EXAMPLES).to_pylist()
        raise spec_errors.InvalidInputError(
            f"table {table}: update_columns: {repeated.num_rows} keys are in more than one row of the table, "
            f"such as {', '.join(map(str, examples))}, so that it isn't clear which to update; upsert "
            "whole rows of these keys first; nothing was committed"
        )
