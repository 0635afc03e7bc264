"""Read a table at exactly one version: the driver plans, the executors read the fragments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.lance_errors import version_cleaned_up
from airflow_provider_lancens.spark.blobs import FORMAT, NO_BLOBS, BlobRange, BlobReads, is_old_blob
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.opened_version import open_version, parse_filter, projected_columns
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.table.row_casts import conform, without_empty
from airflow_provider_lancens.spark.table.version_lookup import WantedVersion
from airflow_provider_lancens.spark.types import arrow_schema, spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from airflow_provider_lancens.conditions import Condition


_GROUP_BYTES = 32 * 1024 * 1024
"""Small fragments are read together up to this size: a task costs more than opening a file."""


def read_opened(
    spark: SparkSession,
    target: ResolvedTable,
    dataset: LanceDataset,
    columns: Sequence[str] | None = None,
    condition: Condition | str | None = None,
    blobs: Mapping[str, BlobRange] | None = None,
) -> DataFrame:
    """Return an opened version of a table as a DataFrame.

    Later commits don't change the DataFrame, however often it is computed, as long as the version isn't
    cleaned up.

    Args:
        spark: the session.
        target: the table.
        dataset: the table, opened at the version.
        columns: the columns to read, in this order; None reads all.
        condition: a condition such as ``month = 3 AND delay IS NOT NULL``, see docs/conditions.md; it runs on
            the executors, before Spark gets the rows.
        blobs: the blob columns to read the bytes of, with what to read: ``"all"``, or the position of the
            first byte and the number of bytes, such as ``{"image": "all", "video": (0, 65536)}``. Values that
            are shorter are read to their end. Other blob columns are read as references: structs of
            ``uri``, ``position`` and ``size``.

    Raises:
        TableColumnNotFoundError: (12) it has no such column.
        InvalidInputError: (13) the columns, the condition or `blobs` is invalid, or Spark has no type for a
            column.
    """
    return frame_of(spark, *plan_opened(target, dataset, columns, condition, blobs))


def frame_of(spark: SparkSession, schema: StructType, task: ReadTask) -> DataFrame:
    """Return the rows that a task reads on the executors, with these columns."""
    if not task.groups:
        return spark.createDataFrame([], schema)
    return spark.range(0, len(task.groups), 1, len(task.groups)).mapInArrow(task.run, schema)


def plan_read(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    wanted: WantedVersion,
    columns: Sequence[str] | None,
    condition: str | None,
    blobs: Mapping[str, BlobRange] | None = None,
) -> tuple[StructType, ReadTask]:
    """Plan a read on the driver: return the Spark schema, and the task for the executors."""
    with resolved_table(namespace, table) as target:
        return plan_opened(target, open_version(target, wanted.find(target)), columns, condition, blobs)


def plan_opened(
    target: ResolvedTable,
    dataset: LanceDataset,
    columns: Sequence[str] | None,
    condition: Condition | str | None,
    blobs: Mapping[str, BlobRange] | None = None,
) -> tuple[StructType, ReadTask]:
    """Plan a read of an opened version, see `plan_read`."""
    projected = projected_columns(target, dataset.schema, columns)
    if old := [field.name for field in projected if is_old_blob(field)]:
        raise spec_errors.InvalidInputError(
            f"table {target.id}: columns: {old} contain blobs of a file format before {FORMAT}, which Spark "
            "can't read; leave them out with columns=[...], and read the bytes with dataset().take_blobs(...)"
        )
    try:
        reads = BlobReads.of(projected, blobs)
    except spec_errors.InvalidInputError as error:
        raise spec_errors.InvalidInputError(f"table {target.id}: {error}") from error
    projected = reads.schema(projected)
    schema = spark_schema(projected)
    if isinstance(condition, str):
        condition = parse_filter(target, dataset, condition)
    if "*" in projected.names:
        raise spec_errors.InvalidInputError(
            f"table {target.id}: Lance cannot read a column named '*'; leave it out with columns=[...]"
        )
    task = ReadTask(
        dataset=target.dataset,
        version=dataset.version,
        schema=arrow_schema(schema),
        filter=None if condition is None else condition.lance_sql,
        groups=_groups(dataset, together=not reads.ranges),
        blobs=reads,
    )
    return schema, task


def _groups(dataset: LanceDataset, *, together: bool) -> list[list[int]]:
    """Return the fragments to read by each task; fragments with large values are small files themselves."""
    groups: list[list[int]] = []
    room = 0
    for fragment_id, size in _sizes(dataset):
        if not groups or size > room or not together:
            groups.append([])
            room = _GROUP_BYTES
        groups[-1].append(fragment_id)
        room -= size
    return groups


def _sizes(dataset: LanceDataset) -> Iterable[tuple[int, int]]:
    for fragment in dataset.get_fragments():
        files = fragment.metadata.files
        # Older writers didn't record the size: such a fragment is read alone.
        yield fragment.fragment_id, sum(file.file_size_bytes or _GROUP_BYTES for file in files)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Read fragments of one version."""

    dataset: DatasetRef
    version: int
    schema: pa.Schema
    """The columns to return to Spark, in their order."""
    filter: str | None
    """In Lance's SQL."""
    groups: Sequence[Sequence[int]]
    """Fragment ids; a task reads one group."""
    blobs: BlobReads = NO_BLOBS
    """What to read of the blob columns."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the groups with the numbers in `batches`, and yield their rows."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.read(number)

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """Read one group, by its number."""
        # Spark has no nanoseconds: times that another writer stored with them are truncated.
        with (
            storage_failures(self.dataset.location, self.dataset.storage_options),
            self.dataset.explaining_removal(self.version, version_cleaned_up),
        ):
            yield from conform(self._scan(self.groups[number]), self.schema, cut_times=True)

    def _scan(self, fragment_ids: Sequence[int]) -> Iterator[pa.RecordBatch]:
        dataset = self.dataset.open(self.version)
        wanted = frozenset(fragment_ids)
        fragments = [fragment for fragment in dataset.get_fragments() if fragment.fragment_id in wanted]
        scanner = dataset.scanner(
            fragments=fragments,
            columns=self.schema.names,
            filter=self.filter,
            with_row_address=bool(self.blobs.ranges),
        )
        return self.blobs.batches(
            dataset, without_empty(scanner.to_batches()), self.dataset.blob_check(dataset)
        )
