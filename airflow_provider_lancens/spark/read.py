"""Read a table at exactly one version: the driver plans, the executors read the fragments."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.blobs import BlobRange, BlobReads
from airflow_provider_lancens.spark.table.opened_version import (
    open_version,
    parse_filter,
    projected_columns,
)
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.table.version_lookup import VersionLike, WantedVersion
from airflow_provider_lancens.spark.types import arrow_schema, spark_schema
from airflow_provider_lancens.spark.write.executor_tasks import KeyReadTask, ReadTask
from airflow_provider_lancens.spark.write.row_changes import POSITION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from pyspark.sql import DataFrame, SparkSession


_GROUP_BYTES = 32 * 1024 * 1024
"""Small fragments are read together up to this size: a task costs more than opening a file."""


def read_table(
    spark: SparkSession,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    version: VersionLike | None = None,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 what Lance's own readers call it
    blobs: Mapping[str, BlobRange] | None = None,
) -> DataFrame:
    """Return a table at one version as a DataFrame.

    The version is fixed here: later commits don't change the DataFrame, however often it is computed, as
    long as the version isn't cleaned up.

    Args:
        spark: the session.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        version: the version to read, see `find_version`; None is the version that is newest now.
        columns: the columns to read, in this order; None reads all.
        filter: a condition such as ``month = 3 AND delay IS NOT NULL``, see docs/conditions.md; it runs on
            the executors, before Spark gets the rows.
        blobs: the blob columns to read the bytes of, with what to read: ``"all"``, or the position of the
            first byte and the number of bytes, such as ``{"image": "all", "video": (0, 65536)}``. Values that
            are shorter are read to their end. Other blob columns are read as references: structs of
            ``uri``, ``position`` and ``size``.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableTagNotFoundError: (8) it has no such tag.
        TableVersionNotFoundError: (11) it has no such version, or none at all yet.
        TableColumnNotFoundError: (12) it has no such column.
        InvalidInputError: (13) the version, the columns, the filter or `blobs` is invalid, or Spark has no
            type for a column.
    """
    wanted = WantedVersion.of(version)
    schema, task = plan_read(namespace, table, wanted=wanted, columns=columns, condition=filter, blobs=blobs)
    return _frame(spark, schema, task)


def read_opened(
    spark: SparkSession,
    target: ResolvedTable,
    dataset: LanceDataset,
    columns: Sequence[str],
    condition: Condition | None = None,
) -> DataFrame:
    """Return columns of an opened version of a table as a DataFrame.

    Raises:
        TableColumnNotFoundError: (12) it has no such column.
        InvalidInputError: (13) Spark has no type for a column.
    """
    return _frame(spark, *_plan(target, dataset, columns, condition))


def read_keys_of(
    spark: SparkSession,
    target: ResolvedTable,
    dataset: LanceDataset,
    keys: Sequence[str],
    others: Sequence[str] = (),
) -> DataFrame:
    """Return key columns of an opened version, others, and the position of each row in the table.

    Rows whose keys no row of Spark can have are left out: their times have nanoseconds.

    Raises:
        TableColumnNotFoundError: (12) it has no such column.
        InvalidInputError: (13) Spark has no type for a column.
    """
    schema, task = _plan(target, dataset, [*keys, *others], None)
    schema = StructType([*schema.fields, StructField(POSITION, LongType())])
    sizes = [fragment.metadata.num_rows for fragment in dataset.get_fragments()]
    starts = itertools.accumulate(sizes, initial=0)
    firsts = {one.fragment_id: start for one, start in zip(dataset.get_fragments(), starts, strict=False)}
    return _frame(
        spark,
        schema,
        KeyReadTask(
            dataset=task.dataset,
            version=task.version,
            schema=task.schema.append(pa.field(POSITION, pa.int64())),
            filter=None,
            groups=task.groups,
            firsts=firsts,
            keys=keys,
        ),
    )


def _frame(spark: SparkSession, schema: StructType, task: ReadTask) -> DataFrame:
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
        return _plan(target, open_version(target, wanted.find(target)), columns, condition, blobs)


def _plan(
    target: ResolvedTable,
    dataset: LanceDataset,
    columns: Sequence[str] | None,
    condition: Condition | str | None,
    blobs: Mapping[str, BlobRange] | None = None,
) -> tuple[StructType, ReadTask]:
    projected = projected_columns(target, dataset.schema, columns)
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
    """Return the fragments to read by each task; those with large values are small files themselves."""
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
