"""Changes of a table without stable row ids: the fragments of its appends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.spark.changes.columns_at import ColumnsAt
from airflow_provider_lancens.spark.changes.row_images import LABELS, labeled
from airflow_provider_lancens.spark.executor_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.history import is_maintenance, transactions_of
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

INSERT = "insert"


@dataclass(frozen=True, slots=True)
class AppendedFragments:
    """What one version appended."""

    columns: ColumnsAt
    fragments: Sequence[int]


@dataclass(frozen=True, slots=True)
class AppendedTask:
    """Read what versions appended, each at that version: a later compaction doesn't hide it there."""

    dataset: DatasetRef
    appended: Sequence[AppendedFragments]
    filter: str | None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the appends with the numbers in `batches`."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with storage_failures(self.dataset.location, self.dataset.storage_options):
                    yield from self._read(self.appended[number])

    def _read(self, part: AppendedFragments) -> Iterator[pa.RecordBatch]:
        dataset = self.dataset.open(part.columns.version)
        wanted = frozenset(part.fragments)
        fragments = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id in wanted]
        scanner = dataset.scanner(
            columns=part.columns.stored, fragments=fragments, filter=self.filter, with_row_address=True
        )
        for batch in part.columns.batches(scanner.to_batches()):
            labels = [pa.repeat(one, batch.num_rows) for one in _labels(part.columns.version)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *labels], schema=labeled(batch.schema))


def appended_fragments(
    target: ResolvedTable, newest: LanceDataset, after: int, schema: pa.Schema
) -> list[AppendedFragments]:
    """Return what the versions above `after` appended.

    Args:
        target: the table.
        newest: the last version of the range.
        after: the version before the range.
        schema: the columns to read.

    Raises:
        TableVersionNotFoundError: (11) a version was cleaned up.
        InvalidInputError: (13) a version changed rows in another way than by an append.
    """
    return [
        _appended(target.open(version), newest, transaction, schema)
        for version, transaction in transactions_of(newest, after)
        if _is_append(target, version, transaction)
    ]


def _labels(version: int) -> list[pa.Scalar]:
    made_by = None if is_detached(version) else version
    return [pa.scalar(value, field.type) for value, field in zip((INSERT, made_by), LABELS, strict=True)]


def _is_append(target: ResolvedTable, version: int, transaction: Transaction | None) -> bool:
    if transaction is None:
        raise TableVersionNotFoundError(
            f"table {target.id}: version {version} was cleaned up, and the table has no stable row ids, by "
            "which its changes could be told without it"
        )
    kind = type(transaction.operation).__name__
    if kind != "Append" and not is_maintenance(transaction):
        raise InvalidInputError(
            f"table {target.id}: version {version} is no append ({kind}), and the table has no stable row "
            "ids, by which changes of rows could be told; they are given to a table by its first write, with "
            "enable_stable_row_ids=True"
        )
    return kind == "Append"


def _appended(
    dataset: LanceDataset, newest: LanceDataset, transaction: Transaction | None, schema: pa.Schema
) -> AppendedFragments:
    operation: Any = transaction.operation if transaction is not None else None
    paths = {file.path for fragment in operation.fragments for file in fragment.files}
    fragments = [
        fragment.fragment_id
        for fragment in dataset.get_fragments()
        if any(file.path in paths for file in fragment.metadata.files)
    ]
    return AppendedFragments(ColumnsAt.of(dataset, newest, schema), fragments)
