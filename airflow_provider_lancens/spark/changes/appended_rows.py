"""Rows that versions appended, by the data files of their commits; needs no stable row ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.spark.changes.changed_rows import LABELS, ColumnsAt, labeled
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.history import is_maintenance, transactions_of

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

INSERT = "insert"


@dataclass(frozen=True, slots=True)
class VersionRows:
    """Rows of one version, in the fragments with these data files."""

    version: int
    paths: frozenset[str]
    names: Mapping[str, str] | None = None
    """The name in this version of each column to read that it has; None if all have their own names."""


@dataclass(frozen=True, slots=True)
class VersionReader:
    """Reads rows on executors, each at the version that appended it, where no later compaction hides it."""

    dataset: DatasetRef
    schema: pa.Schema
    """The columns to return."""
    filter: str | None
    """In Lance's SQL."""

    def read(self, part: VersionRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            dataset = self.dataset.open(part.version)
            own = {name: name for name in self.schema.names}
            columns = ColumnsAt(part.version, self.schema, own if part.names is None else part.names)
            fragments = [
                fragment
                for fragment in dataset.get_fragments()
                if any(file.path in part.paths for file in fragment.metadata.files)
            ]
            # With addresses, since a version may have none of the columns, but still has rows.
            scanner = dataset.scanner(
                columns=columns.stored, fragments=fragments, filter=self.filter, with_row_address=True
            )
            yield from columns.batches(scanner.to_batches())


@dataclass(frozen=True, slots=True)
class AppendedTask:
    """Read what versions appended, labeled as inserted."""

    reader: VersionReader
    appended: Sequence[VersionRows]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the appends with the numbers in `batches`."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._read(self.appended[number])

    def _read(self, part: VersionRows) -> Iterator[pa.RecordBatch]:
        for batch in self.reader.read(part):
            labels = [pa.repeat(label, batch.num_rows) for label in _labels(part.version)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *labels], schema=labeled(batch.schema))


def appended_rows(target: ResolvedTable, newest: LanceDataset, after: int) -> list[VersionRows]:
    """Return what the versions above `after` appended.

    Args:
        target: the table.
        newest: the last version of the range.
        after: the version before the range.

    Raises:
        TableVersionNotFoundError: (11) a version was cleaned up.
        InvalidInputError: (13) a version changed rows or columns in another way than by an append.
    """
    return [
        VersionRows(version, file_paths(transaction))
        for version, transaction in transactions_of(newest, after)
        if _is_append(target, version, transaction)
    ]


def file_paths(transaction: Transaction | None) -> frozenset[str]:
    """Return the paths of the data files that an append committed."""
    operation: Any = transaction.operation if transaction is not None else None
    return frozenset(file.path for fragment in operation.fragments for file in fragment.files)


def _labels(version: int) -> list[pa.Scalar]:
    made_by = None if is_detached(version) else version
    return [pa.scalar(value, field.type) for value, field in zip((INSERT, made_by), LABELS, strict=True)]


def _is_append(target: ResolvedTable, version: int, transaction: Transaction | None) -> bool:
    if transaction is None:
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id}: version {version} was cleaned up; without stable row ids, its changes "
            "can no longer be determined"
        )
    kind = type(transaction.operation).__name__
    if kind != "Append" and not is_maintenance(transaction):
        raise spec_errors.InvalidInputError(
            f"table {target.id}: version {version} isn't an append ({kind}), and the changes of other "
            "operations require stable row ids: declare such a table with "
            "layout={'stable_row_ids': True}, or give the first write options={'stable_row_ids': True}"
        )
    return kind == "Append"
