"""Read what changed between two versions of a table: on executors, the changed rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.system_columns import OFFSET_BITS
from airflow_provider_lancens.spark.changes.appended_rows import (
    INSERT,
    AppendedTask,
    VersionReader,
    appended_rows,
)
from airflow_provider_lancens.spark.changes.change_arguments import (
    check_filter_at,
    check_labels,
    check_precedes,
    check_range,
    check_same_kinds,
)
from airflow_provider_lancens.spark.changes.changed_rows import (
    ADDRESSES,
    CHANGE_TYPE,
    CHANGED_ADDRESSES,
    COMMIT_VERSION,
    COMPARED_ROWS,
    LISTED_ROWS,
    READ_BYTES,
    AddressTask,
    ChangedFragment,
    ChangedRowReader,
    ColumnsAt,
    ComparedVersions,
    ComparisonTask,
    Partition,
    PartitionTask,
    ValueComparison,
    changed_fragments,
    labeled,
    partitions_of,
    readable_columns,
)
from airflow_provider_lancens.spark.read import read_opened
from airflow_provider_lancens.spark.table.column_history import match_columns
from airflow_provider_lancens.spark.table.history import transactions_of
from airflow_provider_lancens.spark.table.opened_version import open_version, parse_filter
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.types import spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from lance import LanceDataset
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from airflow_provider_lancens.conditions import Condition

IfUnavailable = Literal["fail", "read_all"]
SNAPSHOT = "snapshot"
_MOST_TASKS = 256


def read_changes(
    spark: SparkSession,
    target: ResolvedTable,
    *,
    after_version: int | None,
    version: int,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 what Lance's own readers call it
    if_unavailable: IfUnavailable = "fail",
) -> DataFrame:
    """Return the rows that changed between two versions as a DataFrame.

    It contains the net change: deleting the rows of `after_version` that are ``delete`` or
    ``update_preimage`` and adding the rows that are ``insert`` or ``update_postimage`` gives the rows of
    `version`. Rows that only moved, by compaction, aren't in it. The columns of the table are followed by:

    - ``_change_type``: ``insert``, ``delete``, ``update_preimage`` (the values before an update) or
      ``update_postimage`` (the values after it). An upsert by this package replaces rows: ``delete`` and
      ``insert``.
    - ``_commit_version``: the version that inserted or updated the row; null if it was deleted or restored,
      if the version is staged, or if another client replaced a column's values without saying in which rows.

    A table whose first write had ``stable_row_ids`` has these changes whatever was committed, also if
    versions in between were cleaned up. Without, only appends are known.

    Args:
        spark: the session.
        target: the table.
        after_version: the version whose rows are known, such as the `previous_version` of a sensor; None
            or 0, before the first version, returns all rows of `version` as inserted.
        version: the last version of the range.
        columns: the columns to read, in this order; None reads all. The two above follow in any case.
        filter: a condition, see docs/conditions.md, on the rows, before and after their change; its columns
            must have had the same names in both versions.
        if_unavailable: what to do if the changes are unknown: ``fail``, or ``read_all``, which returns
            all rows of `version` with the type ``snapshot``.

    Raises:
        TableVersionNotFoundError: (11) there is no such version, or it was cleaned up.
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) a version is invalid, `version` is older than `after_version`, the filter is
            invalid or on columns that have changed, a column contains blobs, is listed twice or is named
            like a label, or the changes are unknown.
    """
    newest = open_version(target, version)
    condition = None if filter is None else parse_filter(target, newest, filter)
    schema = readable_columns(target, newest, columns)
    check_labels(target, schema)
    read = _Read(spark, target, newest, schema, condition)
    if after_version is not None:
        check_range(target, after_version, version)
    if not after_version:
        return read.everything(INSERT)
    try:
        return read.changes(_opened(target, after_version))
    except (spec_errors.InvalidInputError, spec_errors.TableVersionNotFoundError):
        if if_unavailable == "fail":
            raise
        return read.everything(SNAPSHOT)


def _opened(target: ResolvedTable, version: int) -> LanceDataset:
    try:
        known = target.check_version(version)
    except spec_errors.TableVersionNotFoundError as error:
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id}: after_version={version} was cleaned up, or has not been written; keep the "
            "versions that a consumer needs by a tag, or read the whole table with if_unavailable='read_all'"
        ) from error
    return target.open(version, known)


@dataclass(frozen=True, slots=True)
class _Read:
    """A read of changes, up to an opened version."""

    spark: SparkSession
    target: ResolvedTable
    newest: LanceDataset
    schema: pa.Schema
    filter: Condition | None

    def everything(self, change_type: str) -> DataFrame:
        """Return all rows."""
        from pyspark.sql import functions as sql

        rows = read_opened(self.spark, self.target, self.newest, self.schema.names, self.filter)
        version = None if is_detached(self.newest.version) else self.newest.version
        return rows.withColumns(
            {CHANGE_TYPE: sql.lit(change_type), COMMIT_VERSION: sql.lit(version).cast("long")}
        )

    def changes(self, before: LanceDataset) -> DataFrame:
        """Return the rows that aren't the same in an older version."""
        if before.version == self.newest.version:
            return self._none()
        check_precedes(self.target, before.version, self.newest)
        if not (before.has_stable_row_ids and self.newest.has_stable_row_ids):
            return self._appended(before.version)
        commits = list(transactions_of(self.newest, before.version))
        match = match_columns(before, self.newest, commits)
        check_same_kinds(self.target, before, self.schema, match)
        filtered = () if self.filter is None else self.filter.columns
        names = {name: match.names.get(name) for name in (*self.schema.names, *filtered)}
        fragments = changed_fragments(ComparedVersions(before, self.newest, names), commits)
        if not fragments:
            return self._none()
        if self.filter is not None:
            check_filter_at(self.target, before, self.newest, match.names, self.filter)
        columns = ColumnsAt.of(str(self.target.id), before.version, self.schema, match)
        return self._changed_rows(before, columns, fragments)

    def _appended(self, after: int) -> DataFrame:
        appended = appended_rows(self.target, self.newest, after)
        if not appended:
            return self._none()
        reader = VersionReader(self.target.dataset, self.schema, self._lance_sql)
        task = AppendedTask(reader, appended)
        return _numbers(self.spark, len(appended)).mapInArrow(task.run, spark_schema(labeled(self.schema)))

    def _changed_rows(
        self, before: LanceDataset, columns: ColumnsAt, fragments: Sequence[ChangedFragment]
    ) -> DataFrame:
        dataset, newest = self.target.dataset, self.newest.version
        own = ColumnsAt.of(str(self.target.id), newest, self.schema)
        reader = ChangedRowReader(dataset, columns, own, self._lance_sql)
        steps = _Steps(
            AddressTask(dataset, before.version, newest, fragments),
            ComparisonTask(
                before.version, is_detached(newest), ValueComparison(dataset, columns, own, self._lance_sql)
            ),
            reader,
            spark_schema(labeled(self.schema)),
        )
        return steps.run(self.spark, partitions_of(before, self.newest, fragments))

    @property
    def _lance_sql(self) -> str | None:
        return None if self.filter is None else self.filter.lance_sql

    def _none(self) -> DataFrame:
        return self.spark.createDataFrame([], spark_schema(labeled(self.schema)))


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of a read: one Python process does them all for a partition of the rows, if there are any."""

    listing: AddressTask
    comparison: ComparisonTask
    reader: ChangedRowReader
    schema: StructType

    def run(self, spark: SparkSession, partitions: Sequence[Partition] | None) -> DataFrame:
        """Return the changed rows."""
        if partitions is None:
            return self._shuffled(spark)
        task = PartitionTask(self.listing, self.comparison, self.reader, partitions)
        return _numbers(spark, len(partitions)).mapInArrow(task.run, self.schema)

    def _shuffled(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql import functions as sql

        tasks = self._tasks(sum(fragment.changed_bytes for fragment in self.listing.fragments), READ_BYTES)
        fragment = sql.shiftright("address", OFFSET_BITS)
        by_fragment = self._compared(spark).repartition(tasks, "is_after", fragment)
        rows = by_fragment.sortWithinPartitions("is_after", "address")
        return rows.mapInArrow(self.reader.run, self.schema)

    def _compared(self, spark: SparkSession) -> DataFrame:
        fragments = self.listing.fragments
        listing = self._tasks(sum(fragment.rows for fragment in fragments), LISTED_ROWS)
        listed = _numbers(spark, len(fragments), listing).mapInArrow(
            self.listing.run, spark_schema(ADDRESSES)
        )
        comparing = _divided(sum(fragment.compared_rows for fragment in fragments), COMPARED_ROWS)
        by_row = listed.repartition(comparing, "row_id")
        return by_row.mapInArrow(self.comparison.run, spark_schema(CHANGED_ADDRESSES))

    def _tasks(self, amount: int, per_task: int) -> int:
        return min(_divided(amount, per_task), len(self.listing.fragments), _MOST_TASKS)


def _divided(amount: int, per_task: int) -> int:
    return max(1, -(-amount // per_task))


def _numbers(spark: SparkSession, count: int, tasks: int | None = None) -> DataFrame:
    return spark.range(0, count, 1, min(tasks or count, _MOST_TASKS))
