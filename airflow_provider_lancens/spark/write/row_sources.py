"""The rows of one write: their source, and how the executors write them as fragments.

How the fragments are committed under a key is in `pipeline`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from pyspark.sql.types import DateType, StructType

from airflow_provider_lancens.spark.types import arrow_schema
from airflow_provider_lancens.spark.write.batch_sizing import in_bounded_batches
from airflow_provider_lancens.spark.write.executor_tasks import WRITTEN_COLUMNS, WriteTask
from airflow_provider_lancens.spark.write.row_changes import OWN_COLUMNS
from airflow_provider_lancens.spark.write.row_digest import DIGESTED_COLUMNS, combined_digest, digest_task
from airflow_provider_lancens.spark.write.row_schema import is_zoned_timestamp

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row


Written: TypeAlias = "Sequence[Row | Mapping[str, Any]]"
"""What the executors wrote, which isn't committed: a row of `executor_tasks.WRITTEN_COLUMNS` per fragment."""


class Columns(Protocol):
    """The columns of rows to write."""

    @property
    def time_zone_known(self) -> bool:
        """Whether the time zone is known in which a date becomes a timestamp at midnight."""

    @property
    def match_case(self) -> bool:
        """Whether names that differ only in case are different ones where columns are merged."""

    def schema(
        self,
        storage: Mapping[str, str],
        vectors: Mapping[str, int] | None = None,
        table: pa.Schema | None = None,
    ) -> pa.Schema:
        """Return the columns as a dataset stores them.

        Args:
            storage: the storage options of the table, for rows that are read with the same ones.
            vectors: array columns to store as fixed-size lists, with their dimension.
            table: the columns that the rows are to fit; None if theirs are to be the table's.

        Raises:
            InvalidInputError: (13) a column can't be stored.
        """


class Rows(Columns, Protocol):
    """Rows that executors can write in parallel."""

    def write(self, task: WriteTask) -> Written:
        """Write all rows on the executors, and return the fragments."""


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """The columns of a DataFrame."""

    frame: StructType
    time_zone_known: bool = False
    match_case: bool = True
    """A data source can't read the session's configuration."""

    def schema(
        self,
        storage: Mapping[str, str],  # noqa: ARG002 Spark reads with its own options
        vectors: Mapping[str, int] | None = None,
        table: pa.Schema | None = None,  # noqa: ARG002 Spark's types don't depend on it
    ) -> pa.Schema:
        """See `Columns.schema`."""
        return arrow_schema(self.frame, vectors)


@dataclass(frozen=True, slots=True)
class FrameRows:
    """The rows of a DataFrame, which Spark passes to the task as Arrow batches."""

    frame: DataFrame
    deletes: bool = False
    """Whether the rows say which of them are deletions, see `row_changes`."""
    kept: pa.Schema | None = None
    """The table's columns that rows that exist keep; the rows may lack them."""
    time_zone_known: ClassVar[bool] = True
    """The time zone is the session's, as for every such cast in Spark."""

    @property
    def match_case(self) -> bool:
        """See `Columns.match_case`: as in the session's SQL."""
        return self.frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"

    def schema(
        self,
        storage: Mapping[str, str],  # noqa: ARG002 Spark reads with its own options
        vectors: Mapping[str, int] | None = None,
        table: pa.Schema | None = None,  # noqa: ARG002 Spark's types don't depend on it
    ) -> pa.Schema:
        """See `Columns.schema`."""
        own = [one for one in self.frame.schema.fields if one.name not in OWN_COLUMNS]
        schema = arrow_schema(StructType(own), vectors)
        for field in self.kept or ():
            if field.name not in schema.names:
                schema = schema.append(field)
        return schema

    def write(self, task: WriteTask) -> Written:
        """See `Rows.write`: the DataFrame is computed here, once."""
        with in_bounded_batches(self._fitting(task.targets), task.run) as (bounded, run):
            return bounded.mapInArrow(run, WRITTEN_COLUMNS).collect()

    def digest(self, table: pa.Schema) -> str:
        """Return the digest of the rows, as a write into a table with these columns has it."""
        frame = self._fitting({field.name: field for field in table})
        with in_bounded_batches(frame, digest_task) as (bounded, run):
            digested = bounded.mapInArrow(run, DIGESTED_COLUMNS).collect()
        return combined_digest(row["digest"] for row in digested)

    def _fitting(self, targets: Mapping[str, pa.Field]) -> DataFrame:
        """Return the rows with dates as timestamps, where the table has these."""
        is_date = [isinstance(field.dataType, DateType) for field in self.frame.schema.fields]
        as_timestamps = _zoned(self.frame.columns, is_date, targets) if any(is_date) else []
        return _with_timestamps(self.frame, as_timestamps) if any(as_timestamps) else self.frame


def _zoned(columns: Sequence[str], is_date: Sequence[bool], targets: Mapping[str, pa.Field]) -> list[bool]:
    """Return which of the columns are dates that the table has as timestamps with a time zone."""
    return [
        date and name in targets and is_zoned_timestamp(targets[name].type)
        for name, date in zip(columns, is_date, strict=True)
    ]


def _with_timestamps(frame: DataFrame, as_timestamps: Sequence[bool]) -> DataFrame:
    """Cast these dates to timestamps, as the table has them: only Spark knows the time zone."""
    # By position: names may differ only in case, or need quoting.
    names = [f"_{number}" for number in range(len(as_timestamps))]
    values = (
        f"cast({name} as timestamp) as {name}" if as_timestamp else name
        for name, as_timestamp in zip(names, as_timestamps, strict=True)
    )
    return frame.toDF(*names).selectExpr(*values).toDF(*frame.columns)
