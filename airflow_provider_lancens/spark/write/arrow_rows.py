"""Rows in the memory of the driver, as Arrow, pandas or Polars have them: written here, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.types import with_vectors
from airflow_provider_lancens.spark.write.batch_sizing import BATCH_BYTES
from airflow_provider_lancens.spark.write.executor_tasks import WriteTask, refusing
from airflow_provider_lancens.spark.write.files.projection import (
    inner_views,
    plain_array,
    plain_schema,
    stored_schema,
)
from airflow_provider_lancens.spark.write.record_batches import without_empty
from airflow_provider_lancens.spark.write.row_digest import RowDigest, combined_digest

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.write.row_sources import Written


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """The rows of an Arrow stream, see `row_sources.Rows`."""

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
                or of Polars; or a ``pyarrow.RecordBatchReader`` or another stream, not held in memory.

        Raises:
            InvalidInputError: (13) it has values that Arrow can't represent.
        """
        try:
            match type(rows).__module__.partition(".")[0]:
                case "pandas":
                    return cls(pa.Table.from_pandas(rows, preserve_index=False))
                case "polars":
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
        for batch in task.write(refusing(task.fitted(self._batches()), "rows: {}")):
            written += batch.to_pylist()
        return written

    def _batches(self) -> Iterator[pa.RecordBatch]:
        batches = self.rows.to_batches() if isinstance(self.rows, pa.Table) else self.rows
        for batch in without_empty(batches):
            columns = [plain_array(column) for column in batch.columns]
            plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
            # A batch may be a whole table, whose conversion would take as much memory again.
            at_once = max(1, plain.num_rows * BATCH_BYTES // max(plain.nbytes, 1))
            for start in range(0, plain.num_rows, at_once):
                yield plain.slice(start, at_once)
