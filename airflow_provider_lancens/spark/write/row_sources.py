"""The rows of one write: a DataFrame, which executors write as fragments, or Arrow data in this process.

How the fragments are committed under a key is in `write_rows`. Rows in memory are written
without PySpark, which need not be installed then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.options import Change, Upsert
from airflow_provider_lancens.spark.table.column_fit import is_zoned_timestamp, with_vectors
from airflow_provider_lancens.spark.table.row_casts import without_empty
from airflow_provider_lancens.spark.table.row_hashes import (
    DIGESTED_COLUMNS,
    RowDigest,
    combined_digest,
    digest_task,
)
from airflow_provider_lancens.spark.write.batch_sizing import BATCH_BYTES, bytes_of, in_bounded_batches
from airflow_provider_lancens.spark.write.files.projection import (
    inner_views,
    plain_array,
    plain_schema,
    stored_schema,
)
from airflow_provider_lancens.spark.write.upsert_task import OWN_COLUMNS
from airflow_provider_lancens.spark.write.write_task import WRITTEN_COLUMNS, WriteTask, refusing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType


Written: TypeAlias = "Sequence[Row | Mapping[str, Any]]"
"""What the executors wrote, which isn't committed: a row of `write_task.WRITTEN_COLUMNS` per fragment."""


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
            table: the columns that the rows are to fit; None if the rows' columns are to be the table's.

        Raises:
            InvalidInputError: (13) a column can't be stored.
        """


class Rows(Columns, Protocol):
    """Rows that executors can write in parallel."""

    def write(self, task: WriteTask) -> Written:
        """Write all rows on the executors, and return the fragments."""


class GivenRows(NamedTuple):
    """Rows that a caller has passed to a write."""

    rows: Rows
    digest: Callable[[], str | None]
    """Returns text that differs if the rows differ; None if that is unknown before they are written."""


def rows_of(
    given: Any, change: Change, spark: Callable[[], SparkSession], *, fingerprint: str | None = None
) -> GivenRows:
    """Return the rows that a caller has passed to a write, or that a function of an operator has returned.

    Args:
        given: a Spark DataFrame, a `FileSource`, or rows as Arrow, pandas or Polars have them.
        change: what the write does.
        spark: returns the session, which files need.
        fingerprint: the write's fingerprint; if it is of files, they must still have it when they are read.

    Raises:
        InvalidInputError: (13) it is something else, can't be made Arrow columns, or the change compares rows
            with the table's rows, which needs a DataFrame.
    """
    from airflow_provider_lancens.spark.file_source import FileSource

    if isinstance(given, FileSource):
        from airflow_provider_lancens.spark.write.files.file_plan import is_of_files
        from airflow_provider_lancens.spark.write.files.file_writer import FileRows

        _refuse_comparisons(change, "a FileSource", "read the files as a DataFrame")
        planned = fingerprint if is_of_files(fingerprint) else None
        return GivenRows(FileRows(spark(), given, planned), digest=lambda: None)  # files have a fingerprint
    if hasattr(given, "mapInArrow"):
        from airflow_provider_lancens.spark.write.plan_digest import plan_digest

        return GivenRows(FrameRows(given), partial(plan_digest, given))
    # A DataFrame of pandas exports no Arrow stream before pandas 2.2.
    if hasattr(given, "__arrow_c_stream__") or (_library(given) == "pandas" and hasattr(given, "columns")):
        _refuse_comparisons(change, "rows in memory", "make them a DataFrame by spark.createDataFrame")
        in_memory = ArrowRows.of(given)
        return GivenRows(in_memory, in_memory.digest)
    instead = "pyarrow.Table.from_pylist makes a table of dictionaries"
    if hasattr(given, "collect_batches"):  # a LazyFrame of Polars
        instead = "pass its collect_batches(), which reads the rows one batch after the other"
    raise spec_errors.InvalidInputError(
        "rows: expected a Spark DataFrame, a FileSource, or rows as Arrow, pandas or Polars have "
        f"them, got a {type(given).__name__}; {instead}"
    )


def _library(given: Any) -> str:
    """Return the package of an object's class, such as ``pandas``."""
    return type(given).__module__.partition(".")[0]


def _refuse_comparisons(change: Change, rows: str, instead: str) -> None:
    if isinstance(change, Upsert) and change.chooses_rows:
        raise spec_errors.InvalidInputError(
            f"when_matched, sequence_by, delete_when, update_columns: not allowed for {rows}, which aren't "
            f"compared with the table's; {instead}"
        )


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
        from airflow_provider_lancens.spark.types import arrow_schema

        return arrow_schema(self.frame, vectors)


@dataclass(frozen=True, slots=True)
class FrameRows:
    """The rows of a DataFrame, which Spark passes to the task as Arrow batches."""

    frame: DataFrame
    deletes: bool = False
    """Whether the rows say which of them are deletions, see `upsert_task`."""
    kept: pa.Schema | None = None
    """The table's columns whose values existing rows keep; the rows may lack them."""
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
        from pyspark.sql.types import StructType

        from airflow_provider_lancens.spark.types import arrow_schema

        # Rows that weren't compared may have columns of these names, which are then written as any other.
        added = OWN_COLUMNS if self.deletes or self.kept is not None else ()
        own = [field for field in self.frame.schema.fields if field.name not in added]
        schema = arrow_schema(StructType(own), vectors)
        for field in self.kept or ():
            if field.name not in schema.names:
                schema = schema.append(field)
        return schema

    def write(self, task: WriteTask) -> Written:
        """See `Rows.write`: the DataFrame is computed here, once."""
        targets = task.targets
        with in_bounded_batches(self._fitting(targets), task.run, targets) as (bounded, run):
            return bounded.mapInArrow(run, WRITTEN_COLUMNS).collect()

    def digest(self, table: pa.Schema) -> str:
        """Return the digest of the rows, as a write into a table with these columns has it."""
        targets = self._targets_in(table)
        with in_bounded_batches(self._fitting(targets), digest_task, targets) as (bounded, run):
            digested = bounded.mapInArrow(run, DIGESTED_COLUMNS).collect()
        return combined_digest(row["digest"] for row in digested)

    def _targets_in(self, table: pa.Schema) -> dict[str, pa.Field]:
        """Return the columns of a table by the names of the rows' columns that a write puts into them."""
        exact = {field.name: field for field in table}
        others = {} if self.match_case else {field.name.lower(): field for field in table}
        found = {name: exact.get(name, others.get(name.lower())) for name in self.frame.columns}
        return {name: field for name, field in found.items() if field is not None}

    def _fitting(self, targets: Mapping[str, pa.Field]) -> DataFrame:
        """Return the rows with dates as timestamps, where the table has these."""
        from pyspark.sql.types import DateType

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


class SourceRowsError(Exception):
    """The rows that a caller has passed ended with an error, which is the cause of this one."""


@dataclass(slots=True)
class _GivenBatches:
    """The batches of an Arrow stream, and the error with which it ended."""

    rows: pa.Table | pa.RecordBatchReader
    error: Exception | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.rows.to_batches() if isinstance(self.rows, pa.Table) else self.rows
        except Exception as error:  # whatever the stream raises
            self.error = error
            raise


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """The rows of an Arrow stream, see `Rows`."""

    rows: pa.Table | pa.RecordBatchReader
    """A reader's rows are read once, by the write."""
    time_zone_known: ClassVar[bool] = True
    """The time zone is UTC, as for the rows of files."""
    match_case: ClassVar[bool] = True

    @classmethod
    def of(cls, rows: Any) -> Self:
        """Return the rows of an object that exports an Arrow stream.

        Args:
            rows: a ``pyarrow.Table`` or ``RecordBatch``, a DataFrame of pandas, whose index isn't a column,
                or of Polars; or a ``pyarrow.RecordBatchReader`` or another stream, such as the batches of a
                LazyFrame of Polars, not held in memory.

        Raises:
            InvalidInputError: (13) it has values that Arrow can't represent.
        """
        try:
            match _library(rows):
                case "pandas":
                    return cls(pa.Table.from_pandas(rows, preserve_index=False))
                case "polars" if hasattr(rows, "to_arrow"):  # unlike the batches of a LazyFrame
                    return cls(pa.table(rows))
            if isinstance(rows, pa.RecordBatch):
                return cls(pa.Table.from_batches([rows]))
            return cls(rows if isinstance(rows, pa.Table) else pa.RecordBatchReader.from_stream(rows))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise spec_errors.InvalidInputError(f"rows: they can't be made Arrow columns: {error}") from error

    def digest(self) -> str | None:
        """Return a digest of the rows, whatever their order; None for a stream, which is read only once."""
        if not isinstance(self.rows, pa.Table):
            return None
        digest = RowDigest()
        names = self.rows.schema.names
        digest.add(pa.RecordBatch.from_pydict({"position": range(len(names)), "name": names}))
        for batch in self._batches():
            digest.add(batch)
        return combined_digest([digest.value])

    def schema(
        self,
        storage: Mapping[str, str],  # noqa: ARG002 nothing is read
        vectors: Mapping[str, int] | None = None,
        table: pa.Schema | None = None,
    ) -> pa.Schema:
        """See `Columns.schema`: as a DataFrame of a Parquet file with these columns is stored."""
        for field in self.rows.schema:
            if inner_views(field.type):
                raise spec_errors.InvalidInputError(
                    f"column {field.name}: it is {field.type}: cast it, since views of lists inside another "
                    "value can't be written"
                )
        return with_vectors(stored_schema(plain_schema(self.rows.schema), table), vectors or {})

    def write(self, task: WriteTask) -> Written:
        """See `Rows.write`: one task, in this process."""
        written: list[Mapping[str, Any]] = []
        given = _GivenBatches(self.rows)
        try:
            for batch in task.write(refusing(task.fitted(self._batches(given)), "rows: {}")):
                written += batch.to_pylist()
        except Exception:
            if given.error is None:
                raise
            # What Lance raises then has the form of an error of the storage.
            said = str(given.error).partition(". Detail: ")[0]  # without the traceback, which the cause has
            raise SourceRowsError(f"rows: they could not be read to their end: {said}") from given.error
        return written

    def _batches(self, given: _GivenBatches | None = None) -> Iterator[pa.RecordBatch]:
        for batch in without_empty(given or _GivenBatches(self.rows)):
            columns = [plain_array(column) for column in batch.columns]
            plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
            # A batch may be a whole table, whose conversion would take as much memory again.
            at_once = max(1, plain.num_rows * BATCH_BYTES // max(bytes_of(plain), 1))
            for start in range(0, plain.num_rows, at_once):
                yield plain.slice(start, at_once)
