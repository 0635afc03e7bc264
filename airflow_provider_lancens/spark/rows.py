"""The rows of one write: where they come from, and how the executors make fragments of them.

A write needs no more of them than this; how the fragments are committed under a key is `once`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from airflow_provider_lancens.spark.handover import handed_over
from airflow_provider_lancens.spark.history import Counts
from airflow_provider_lancens.spark.tasks import WRITTEN_COLUMNS, WriteTask
from airflow_provider_lancens.spark.types import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType


class Written(NamedTuple):
    """Fragments that belong to no version yet, as JSON, and what is in them."""

    fragments: list[str]
    counts: Counts


class Columns(Protocol):
    """The columns of rows that are to be written."""

    def schema(self, storage: Mapping[str, str], vectors: Mapping[str, int] | None = None) -> pa.Schema:
        """The columns as a data set holds them.

        Args:
            storage: the storage options of the table, for rows that are read by the same ones.
            vectors: array columns to hold as fixed-size lists, with their dimension.

        Raises:
            InvalidInputError: (13) a column can't be stored as it is.
        """


class Rows(Columns, Protocol):
    """Rows that executors can write side by side."""

    def write(self, task: WriteTask) -> Written:
        """Have the executors write all rows, and bring what they answer."""


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """The columns of a DataFrame."""

    frame: StructType

    def schema(
        self,
        storage: Mapping[str, str],  # noqa: ARG002 Spark reads by options of its own
        vectors: Mapping[str, int] | None = None,
    ) -> pa.Schema:
        """See `Columns.schema`."""
        return arrow_schema(self.frame, vectors)


@dataclass(frozen=True, slots=True)
class FrameRows:
    """The rows of a DataFrame: Spark hands each partition over as Arrow."""

    frame: DataFrame

    def schema(self, storage: Mapping[str, str], vectors: Mapping[str, int] | None = None) -> pa.Schema:
        """See `Columns.schema`."""
        return FrameColumns(self.frame.schema).schema(storage, vectors)

    def write(self, task: WriteTask) -> Written:
        """See `Rows.write`: the DataFrame is computed here, once."""
        with handed_over(self.frame, task.run) as (frame, run):
            return run_on_executors(frame, run)


def run_on_executors(
    frame: DataFrame, run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> Written:
    """Run a task that answers as `WriteTask.run` does on every partition."""
    return gathered(frame.mapInArrow(run, WRITTEN_COLUMNS).collect())


def gathered(answers: Iterable[Row | dict[str, Any]]) -> Written:
    """The rows that tasks answered, as one."""
    answers = list(answers)
    counts = sum((Counts(row["rows"], row["files"], row["bytes"]) for row in answers), Counts())
    return Written([row["fragment"] for row in answers], counts)
