"""Read a table at exactly one version: the driver plans, the executors read the fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from lance_namespace.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described
from airflow_provider_lancens.spark.tasks import ReadTask
from airflow_provider_lancens.spark.types import arrow_schema, spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_GROUP_BYTES = 32 * 1024 * 1024
"""Small fragments are read together up to this size: a task costs more than opening a file."""


def read_table(
    spark: SparkSession,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    version: int | None = None,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 what Lance's own readers call it
) -> DataFrame:
    """A table at one version as a DataFrame.

    The version is settled here: whatever is committed later, the DataFrame stays as it is, however
    often it is computed, as long as the version isn't cleaned up.

    Args:
        spark: the session.
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        version: which version; None is the newest one now.
        columns: which columns, in this order; None is all.
        filter: a condition in Lance's SQL, such as ``month = 3 AND delay IS NOT NULL``; it runs on
            the executors, before Spark sees the rows.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) it has no such version, or none at all yet.
        TableColumnNotFoundError: (12) it has no such column.
        InvalidInputError: (13) the filter can't be understood, or Spark has no type for a column.
    """
    schema, task = plan_read(namespace, table, version=version, columns=columns, condition=filter)
    if not task.groups:
        return spark.createDataFrame([], schema)
    return spark.range(0, len(task.groups), 1, len(task.groups)).mapInArrow(task.run, schema)


def plan_read(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    version: int | None,
    columns: Sequence[str] | None,
    condition: str | None,
) -> tuple[StructType, ReadTask]:
    """What `read_table` settles on the driver: the columns as Spark's, and what the executors do."""
    with described(namespace, table) as target:
        return _plan(target, _open(target, version), columns, condition)


def check_filter(target: Target, dataset: LanceDataset, condition: str) -> None:
    """Return where Lance understands a condition.

    Raises:
        InvalidInputError: (13) it doesn't.
    """
    try:
        dataset.scanner(filter=condition).explain_plan()
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"table {target.id}: filter {condition!r}: {error}") from error


def _plan(
    target: Target, dataset: LanceDataset, columns: Sequence[str] | None, condition: str | None
) -> tuple[StructType, ReadTask]:
    schema = spark_schema(_projected(target, dataset.schema, columns))
    if condition is not None:
        check_filter(target, dataset, condition)
    task = ReadTask(
        dataset=target.dataset,
        version=dataset.version,
        schema=arrow_schema(schema),
        filter=condition,
        groups=_groups(dataset),
    )
    return schema, task


def _open(target: Target, version: int | None) -> LanceDataset:
    if version is None:
        latest = target.open_latest()
        if latest is None:
            raise TableVersionNotFoundError(
                f"table {target.id} is declared, but nothing was written to it yet"
            )
        return latest
    target.check_version(version)
    return target.open(version)


def _projected(target: Target, schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    missing = [name for name in columns if name not in schema.names]
    if missing or not columns:
        raise TableColumnNotFoundError(
            f"table {target.id}: columns: {missing or 'an empty list'} given; there are {schema.names}"
        )
    return pa.schema([schema.field(name) for name in columns])


def _groups(dataset: LanceDataset) -> list[list[int]]:
    groups: list[list[int]] = []
    room = 0
    for fragment_id, size in _sizes(dataset):
        if not groups or size > room:
            groups.append([])
            room = _GROUP_BYTES
        groups[-1].append(fragment_id)
        room -= size
    return groups


def _sizes(dataset: LanceDataset) -> Iterable[tuple[int, int]]:
    for fragment in dataset.get_fragments():
        files = fragment.metadata.files
        # Older writers left the size out: such a fragment is read alone.
        yield fragment.fragment_id, sum(file.file_size_bytes or _GROUP_BYTES for file in files)
