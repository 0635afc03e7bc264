"""The tasks of Spark's executors: compute a column of one fragment and write it, or find out its type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from airflow_provider_lancens.spark.compute.column_files import (
    ColumnFile,
    ColumnFileInfo,
    ColumnLayout,
    field_ids,
    files_of,
    write_column,
)
from airflow_provider_lancens.spark.compute.column_function import ColumnFunction, InvalidResultError
from airflow_provider_lancens.spark.compute.column_values import FragmentValues, Offsets
from airflow_provider_lancens.spark.executor_failures import storage_failures
from airflow_provider_lancens.spark.maintenance.task_answers import answer_class
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.write.task_progress import WriteProgress

if TYPE_CHECKING:
    from lance import LanceDataset

Answer = TypeVar("Answer")


@answer_class
@dataclass(frozen=True, slots=True)
class FunctionFailure:
    """Why the function has no value for a batch."""

    message: str
    is_invalid: bool
    """Whether it returned something invalid; otherwise it raised an exception."""


@answer_class
@dataclass(frozen=True, slots=True)
class TaskAnswer(Generic[Answer]):
    """What a task returns: its result, or why the function failed."""

    result: Answer | None = None
    failure: FunctionFailure | None = None


class _Failed(Exception):  # noqa: N818 only carries a failure through Lance's readers
    def __init__(self, failure: FunctionFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class ColumnRequest:
    """What to compute, the same for all fragments. Picklable."""

    dataset: DatasetRef
    layout: ColumnLayout
    function: ColumnFunction
    inputs: tuple[str, ...]
    """The columns that the function gets."""
    condition: str | None
    """Which rows to compute, in Lance's SQL; None computes all."""
    reads_other_columns: bool
    """Whether the condition may refer to columns other than `inputs` and the computed one."""
    batch_rows: int
    execution_id: str
    """Identifies the run that recomputes rows; empty if there is none."""
    progress: WriteProgress
    """Where to report how far the tasks are."""


@dataclass(frozen=True, slots=True)
class ColumnTask:
    """Compute the column of one fragment, on an executor. Picklable."""

    request: ColumnRequest
    version: int
    fragment: int

    def __call__(self) -> TaskAnswer[ColumnFile]:
        """Write the file, which isn't committed yet; none if no row is to be computed."""
        dataset = self.request.dataset
        try:
            with storage_failures(dataset.location, dataset.storage_options):
                return TaskAnswer(self._file(dataset.open(self.version)))
        except _Failed as failed:
            return TaskAnswer(failure=failed.failure)

    def _file(self, dataset: LanceDataset) -> ColumnFile | None:
        request, fragment = self.request, dataset.get_fragment(self.fragment)
        if fragment is None:  # the driver has found it at this version
            raise RuntimeError(f"version {self.version} has no fragment {self.fragment}")
        condition = request.condition
        if condition is not None:
            matching = fragment.count_rows(condition)
            if not matching:
                return None
            condition = None if matching == fragment.count_rows() else condition
        values = FragmentValues(
            dataset=dataset,
            fragment=fragment,
            column=request.layout.field,
            function=self._values,
            inputs=request.inputs,
            condition=condition,
            batch_rows=request.batch_rows,
            check_blob=request.dataset.blob_check(dataset),
        )
        layout = request.layout
        with request.progress.reporting(values.batches(layout.file_schema)) as batches:
            file = write_column(
                request.dataset, layout, batches, lambda: ColumnFileInfo(values.nulls, request.execution_id)
            )
        depends_on = self._depends_on(dataset)
        return ColumnFile(
            fragment=self.fragment,
            file=file,
            depends_on=depends_on,
            sources=files_of(fragment.metadata, depends_on),
            rows=values.rows,
            nulls=values.nulls,
            offsets=_bitmap(values.offsets) if dataset.has_stable_row_ids else None,
        )

    def _values(self, batch: pa.RecordBatch) -> pa.Array:
        column = self.request.layout.field
        with _reporting():
            values = self.request.function.values(batch, column.type)
            if values.null_count and not column.nullable:
                raise InvalidResultError("returned a null, but the column may not be null")
        return values

    def _depends_on(self, dataset: LanceDataset) -> frozenset[int] | None:
        if self.request.reads_other_columns:
            return None
        inputs = (field_ids(dataset, name) for name in self.request.inputs)
        return frozenset(self.request.layout.ids).union(*inputs)


@dataclass(frozen=True, slots=True)
class TypeTask:
    """Call the function with a batch without rows, on an executor, for the type of its values. Picklable."""

    function: ColumnFunction
    schema: pa.Schema

    def __call__(self) -> TaskAnswer[pa.DataType]:
        """Return the type."""
        empty = pa.RecordBatch.from_pylist([], schema=self.schema)
        try:
            with _reporting():
                return TaskAnswer(self.function.values(empty, None).type)
        except _Failed as failed:
            return TaskAnswer(failure=failed.failure)


@contextmanager
def _reporting() -> Iterator[None]:
    """Tell the function's own failures from all others."""
    try:
        yield
    except InvalidResultError as error:
        raise _Failed(FunctionFailure(str(error), is_invalid=True)) from error
    except Exception as error:  # whatever the user's function raises, when it is loaded too
        raise _Failed(FunctionFailure(f"{type(error).__name__}: {error}", is_invalid=False)) from error


def _bitmap(offsets: list[Offsets]) -> bytes:
    """Return positions as Lance wants them: as a bitmap in the portable format of Roaring."""
    from lance.bitmap import Bitmap

    positions = np.concatenate(offsets).tolist() if offsets else []
    # Its pickled form is that format; the class has no other way to get it.
    pickled: Any = Bitmap(positions).__reduce__()
    serialized: bytes = pickled[1][0]
    return serialized
