"""Upsert on keys: rows that are there are replaced, others added, in one commit.

The executors write the rows as for an append. The driver reads back their keys alone, removes the
rows of the table that have one of them, and commits both at once: it holds keys, never rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.changes import Change, Step

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset

    from airflow_provider_lancens.spark.dataset import DatasetRef

_BATCH_ROWS = 64 * 1024
_EXAMPLES = 3
_COUNT = "count_all"


@dataclass(frozen=True, slots=True)
class Upsert(Change):
    """Remove the rows that have one of these keys, and add the fragments, in one commit."""

    keys: pa.Table = field(repr=False)

    def onto(self, latest: LanceDataset | None) -> Step:
        """See `Change.onto`: the rows to remove are looked for again, also among those of others."""
        if latest is None:
            if self.base is not None:
                raise self._overtaken("its data set was removed")
            return self._replacement(0)
        self.check_same_columns(latest)
        return Step(self._merged(latest), latest.version)

    def _merged(self, latest: LanceDataset) -> object:
        from lance import LanceOperation

        merge = latest.merge_insert(self.keys.column_names).when_matched_delete()
        matched: Any = merge.execute_uncommitted(self.keys)[0].operation
        return LanceOperation.Update(
            removed_fragment_ids=matched.removed_fragment_ids,
            updated_fragments=matched.updated_fragments,
            new_fragments=list(self.fragments),
            update_mode=matched.update_mode,
        )


def check_keys(on: Sequence[str], schema: pa.Schema, table: str) -> None:
    """Return where rows can be told apart by these columns.

    Raises:
        InvalidInputError: (13) a column isn't there, or can't be compared.
    """
    for name in on:
        if name not in schema.names:
            raise InvalidInputError(f"table {table}: on: no column {name!r}; there are {schema.names}")
        if pa.types.is_nested(schema.field(name).type) or pa.types.is_null(schema.field(name).type):
            raise InvalidInputError(
                f"table {table}: on: column {name!r} is {schema.field(name).type}, which is no key; "
                "allowed: columns of single values"
            )


def read_keys(
    dataset: DatasetRef, fragments: Sequence[FragmentMetadata], schema: pa.Schema, table: str
) -> pa.Table:
    """The keys of fragments that belong to no version yet.

    Args:
        dataset: where they were written.
        fragments: whose keys.
        schema: the key columns.
        table: its name, for messages.

    Raises:
        InvalidInputError: (13) two rows have the same key, or one has none.
    """
    files = [file.path for fragment in fragments for file in fragment.files]
    batches = [batch for path in files for batch in _scanned(dataset, path, schema)]
    keys = pa.Table.from_batches(batches, schema)
    _check_given(keys, table)
    _check_unique(keys, table)
    return keys


def _scanned(dataset: DatasetRef, path: str, schema: pa.Schema) -> list[pa.RecordBatch]:
    from lance.file import LanceFileReader

    reader = LanceFileReader(
        f"{dataset.location}/data/{path}", dict(dataset.storage_options) or None, columns=schema.names
    )
    batches = reader.read_all(batch_size=_BATCH_ROWS).to_batches()
    return [batch.select(schema.names).cast(schema) for batch in batches]


def _check_given(keys: pa.Table, table: str) -> None:
    lacking = [name for name in keys.column_names if keys[name].null_count]
    if lacking:
        raise InvalidInputError(
            f"table {table}: on: {', '.join(lacking)} is null in {keys[lacking[0]].null_count} rows of the "
            "source, which then match nothing; leave those rows out, nothing was committed"
        )


def _check_unique(keys: pa.Table, table: str) -> None:
    counts = keys.group_by(keys.column_names).aggregate([([], _COUNT)])
    doubled = counts.filter(pc.greater(counts[_COUNT], 1))
    if doubled.num_rows:
        examples = doubled.drop_columns([_COUNT]).slice(0, _EXAMPLES).to_pylist()
        raise InvalidInputError(
            f"table {table}: on: {doubled.num_rows} keys are in more than one row of the source, such as "
            f"{', '.join(map(str, examples))}; leave one row of each, nothing was committed"
        )
