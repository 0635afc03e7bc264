"""The task that computes a column's values of one fragment: the function, its inputs, the file."""

from __future__ import annotations

import pickle
import sys
import sysconfig
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.row_errors import RowError, check_text, contains_text
from airflow_provider_lancens.namespace.storage.referenced_files import data_file_locations
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.namespace.system_columns import ROW_ADDRESS, offset_of
from airflow_provider_lancens.spark.blobs import CheckBlob, check_blobs, is_blob
from airflow_provider_lancens.spark.maintenance.parallel_tasks import answer_class
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef, vendor_arguments
from airflow_provider_lancens.spark.table.history import COMPUTED_FILES, deletions_of
from airflow_provider_lancens.spark.table.row_casts import uncut
from airflow_provider_lancens.spark.table.row_counts import matching_rows
from airflow_provider_lancens.spark.write.task_progress import WriteProgress

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset
    from lance.bitmap import Bitmap
    from lance.fragment import DataFile, LanceFragment
    from numpy.typing import NDArray


Function = Callable[..., Any]
"""``function(batch)``, or ``function(batch, made)`` with what `setup` has made in the same worker."""


class ColumnFunctionError(RuntimeError):
    """The user's function raised an exception; the message names it, the column and the fragment."""


class InvalidResultError(ValueError):
    """The function returned something that isn't a value for each row; raised and caught on an executor."""


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """A function of record batches that returns the values of one column. Picklable."""

    column: str
    """The name of the column."""
    pickled: bytes = field(repr=False)
    """The function and its setup, or None."""

    @classmethod
    def of(cls, column: str, function: Function | str, setup: Function | str | None) -> ColumnFunction:
        """Resolve a function and its setup on the driver, and pickle them.

        Raises:
            InvalidInputError: (13) one of them can't be called, imported or pickled.
        """
        made = resolved(function, "function")
        prepared = None if setup is None else resolved(setup, "setup")
        return cls(column, _pickled(made, prepared))

    def values(self, batch: pa.RecordBatch, expected: pa.DataType | None) -> pa.Array:
        """Compute the values of a batch, on an executor.

        Args:
            batch: the rows.
            expected: the column's type; None accepts any.

        Raises:
            InvalidResultError: the result isn't a value of this type for each row.
        """
        found = self._array(_loaded(self.pickled)(batch))
        if len(found) != batch.num_rows:
            raise InvalidResultError(f"returned {len(found)} values for a batch of {batch.num_rows} rows")
        if contains_text(found.type):
            self._check_text(found)
        return found if expected is None else _fitting(found, expected)

    def _check_text(self, found: pa.Array) -> None:
        try:
            check_text(found, self.column)
        except RowError as error:
            raise InvalidResultError(f"returned {error.reason}") from error

    def _array(self, result: Any) -> pa.Array:
        if isinstance(result, pa.RecordBatch | pa.Table):
            names = result.column_names
            if self.column not in names and len(names) != 1:
                raise InvalidResultError(f"returned the columns {names}, but not {self.column!r}")
            result = result.column(self.column if self.column in names else 0)
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array):
            raise InvalidResultError(
                f"returned a value of type {type(result).__name__}; expected a pyarrow.Array, or a "
                f"pyarrow.RecordBatch with the column {self.column!r}"
            )
        return result.storage if isinstance(result, pa.ExtensionArray) else result


def resolved(function: Function | str, argument: str) -> Function:
    """Return a function that is given by itself, or by its path such as ``module.function``.

    Raises:
        InvalidInputError: (13) there is none.
    """
    if isinstance(function, str):
        module, _, name = function.rpartition(".")
        try:
            function = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise spec_errors.InvalidInputError(
                f"{argument}: expected a function or its path such as 'module.function', got "
                f"{function!r}: {error}"
            ) from error
    if not callable(function):
        raise spec_errors.InvalidInputError(
            f"{argument}: expected a function, got a {type(function).__name__}"
        )
    return function


@lru_cache(maxsize=1)  # a reused worker must not keep the models of earlier runs
def _loaded(pickled: bytes) -> Callable[[pa.RecordBatch], Any]:
    function, setup = pickle.loads(pickled)  # noqa: S301 from our own driver
    if setup is None:
        return function  # type: ignore[no-any-return]
    made = setup()
    return lambda batch: function(batch, made)


def _pickled(function: Function, setup: Function | None) -> bytes:
    from pyspark import cloudpickle

    with _modules_by_value(function, setup):
        try:
            return cloudpickle.dumps((function, setup))  # type: ignore[no-any-return,no-untyped-call]
        except Exception as error:  # pickling may raise any type
            raise spec_errors.InvalidInputError(
                f"function, setup: cannot be pickled for Spark's executors; create what can't be pickled, "
                f"such as a model, in setup: {type(error).__name__}: {error}"
            ) from error


@contextmanager
def _modules_by_value(*functions: Function | None) -> Iterator[None]:
    """Pickle functions of modules that executors can't import, such as a DAG file, with their code."""
    from pyspark import cloudpickle

    names = {getattr(function, "__module__", None) or "" for function in functions}
    modules = [sys.modules[name] for name in names if name in sys.modules and not _is_installed(name)]
    registered = cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]
    added = [module for module in modules if module.__name__ not in registered]
    for module in added:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _is_installed(name: str) -> bool:
    file = getattr(sys.modules[name], "__file__", None)
    if file is None:  # a built-in module, or an interactive `__main__`, which is always pickled by value
        return True
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).is_relative_to(folder) for folder in folders)


def _fitting(found: pa.Array, expected: pa.DataType) -> pa.Array:
    if found.type == expected:
        return found
    if not _same_kind(found.type, expected):
        raise InvalidResultError(f"returned values of type {found.type}, but the column is {expected}")
    try:
        return found.cast(expected)
    except pa.ArrowException as error:
        raise InvalidResultError(
            f"returned values of type {found.type} that don't fit the column's type {expected}: {error}"
        ) from error


def _same_kind(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether values differ only in their width, as Python's numbers and lists do in Arrow."""
    if _is_list(found) and _is_list(expected):
        return _same_kind(found.value_type, expected.value_type)
    # An array that contains only nulls has the type null.
    return (
        found == expected
        or pa.types.is_null(found)
        or any(all(map(kind, (found, expected))) for kind in _KINDS)
    )


def _is_list(arrow: pa.DataType) -> bool:
    return any(
        kind(arrow) for kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def _is_text(arrow: pa.DataType) -> bool:
    return arrow in (pa.string(), pa.large_string())


def _is_bytes(arrow: pa.DataType) -> bool:
    return arrow in (pa.binary(), pa.large_binary())


_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_timestamp,
    _is_text,
    _is_bytes,
)


"""The part of a row's address that is its position in the fragment."""
_READ_AHEAD = 2
_IO_BUFFER = 256 * 1024 * 1024
"""Lance's default of 2 GB is meant for one scan on a machine, not for one in each task."""

Offsets: TypeAlias = "NDArray[np.int64]"
Piece: TypeAlias = tuple[Offsets, pa.Array]
"""Positions of rows in the fragment, ascending, and their values."""


@dataclass(slots=True)
class FragmentValues:
    """The values of one fragment."""

    dataset: LanceDataset
    fragment: LanceFragment
    column: pa.Field
    function: Callable[[pa.RecordBatch], pa.Array]
    """Returns the values of the rows of a batch, of the column's type."""
    inputs: Sequence[str]
    """The columns that the function gets."""
    condition: str | None
    """Which rows to compute; None computes all. The others keep their values."""
    batch_rows: int
    check_blob: CheckBlob
    """Called for each file that a row refers to, see `DatasetRef.blob_check`."""
    offsets: list[Offsets] = field(default_factory=list)
    """The positions of the computed rows."""
    nulls: int = 0
    """How many rows have no value."""

    @property
    def rows(self) -> int:
        """The number of computed rows so far."""
        return sum(map(len, self.offsets))

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the values in the order of the rows, and nulls for deleted rows."""
        pieces = self._computed() if self.condition is None else merged(self._kept(), self._computed())
        rows = self.fragment.physical_rows
        for values in padded(self._counted(pieces), self.column.type, rows, self.batch_rows):
            yield pa.RecordBatch.from_arrays([values], schema=schema)

    def _computed(self) -> Iterator[Piece]:
        for batch in self._scan(self.inputs, self.condition):
            if not batch.num_rows:
                continue
            positions = _positions(batch)
            values = self.function(batch.select(list(self.inputs)))
            self.offsets.append(positions)
            yield positions, values

    def _kept(self) -> Iterator[Piece]:
        for batch in self._scan([self.column.name], None):
            if batch.num_rows:
                yield _positions(batch), batch.column(self.column.name)

    def _counted(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            self.nulls += piece[1].null_count
            yield piece

    def _check_blobs(self, columns: Sequence[str]) -> None:
        blobs = [name for name in columns if is_blob(self.dataset.schema.field(name).type)]
        if not blobs:
            return
        for batch in self.dataset.scanner(columns=blobs, fragments=[self.fragment]).to_batches():
            for name in blobs:
                check_blobs(batch.column(name), name, self.check_blob)

    def _scan(self, columns: Sequence[str], condition: str | None) -> Iterator[pa.RecordBatch]:
        self._check_blobs(columns)
        scanner = self.dataset.scanner(
            columns=list(columns),
            filter=condition,
            fragments=[self.fragment],
            with_row_address=True,
            batch_size=self.batch_rows,
            batch_readahead=_READ_AHEAD,
            io_buffer_size=_IO_BUFFER,
            scan_in_order=True,
            use_scalar_index=False,  # an index returns rows in its own order
            blob_handling="all_binary",
        )
        yield from scanner.to_batches()


def merged(kept: Iterator[Piece], computed: Iterator[Piece]) -> Iterator[Piece]:
    """Replace values of rows by computed ones.

    Args:
        kept: the values of all rows.
        computed: the values of some of these rows.
    """
    waiting: Piece | None = next(computed, None)
    for offsets, values in kept:
        found: list[Piece] = []
        while waiting is not None and waiting[0][0] <= offsets[-1]:
            count = int(np.searchsorted(waiting[0], offsets[-1], side="right"))
            found.append((waiting[0][:count], waiting[1].slice(0, count)))
            rest = (waiting[0][count:], waiting[1].slice(count))
            waiting = rest if len(rest[0]) else next(computed, None)
        yield offsets, _replaced(offsets, values, found)


def _replaced(offsets: Offsets, values: pa.Array, found: Sequence[Piece]) -> pa.Array:
    if not found:
        return values
    chosen = np.arange(len(offsets))
    positions = np.concatenate([piece[0] for piece in found])
    chosen[np.searchsorted(offsets, positions)] = len(offsets) + np.arange(len(positions))
    return pa.concat_arrays([values, *(piece[1] for piece in found)]).take(pa.array(chosen))


def padded(pieces: Iterator[Piece], arrow: pa.DataType, rows: int, step: int) -> Iterator[pa.Array]:
    """Yield the values of consecutive rows, with nulls in the gaps.

    Args:
        pieces: values of some rows.
        arrow: their type.
        rows: the number of all rows.
        step: the maximum length of an array.
    """
    start = 0
    for offsets, values in pieces:
        while start <= offsets[-1]:
            end = min(start + step, int(offsets[-1]) + 1)
            first, last = (int(at) for at in np.searchsorted(offsets, [start, end]))
            yield _spread(values.slice(first, last - first), offsets[first:last] - start, end - start)
            start = end
    for begin in range(start, rows, step):
        yield pa.nulls(min(step, rows - begin), arrow)


def _spread(values: pa.Array, at: Offsets, length: int) -> pa.Array:
    if len(values) == length:
        return values
    chosen = np.full(length, -1)
    chosen[at] = np.arange(len(values))
    return values.take(pa.array(chosen, mask=chosen < 0))


def _positions(batch: pa.RecordBatch) -> Offsets:
    addresses: Offsets = batch.column(ROW_ADDRESS).to_numpy().astype(np.int64)
    return offset_of(addresses)


_NULLS, _EXECUTION_ID = "lancens.nulls", "lancens.execution_id"
_TOMBSTONE = -2
"""Lance's id of a field whose values in a file aren't used any more."""
_READERS = 16


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How a dataset stores one of its columns. Picklable."""

    field: pa.Field
    ids: tuple[int, ...]
    """The ids of the column and of its nested fields, parents first."""
    fields: tuple[int, ...]
    """The ids of the fields that have values in a file."""
    indices: tuple[int, ...]
    """For each of `fields`, the index of its column in a file."""
    format: tuple[int, int]
    """The version of the file format."""

    @classmethod
    def of(cls, dataset: LanceDataset, column: str) -> Self:
        """Return the layout of a column; Lance itself is asked, by writing one null in memory."""
        import lance

        stored = dataset.schema.field(column)
        nullable = pa.schema([stored.with_nullable(True)])
        sample = lance.write_dataset(
            pa.Table.from_pylist([{column: None}], schema=nullable),
            "memory://",
            data_storage_version=dataset.data_storage_version,  # type: ignore[arg-type]
        )
        file = sample.get_fragments()[0].metadata.files[0]
        ids = field_ids(dataset, column)
        return cls(
            stored,
            ids,
            tuple(ids[number] for number in file.fields),
            tuple(file.column_indices),
            (file.file_major_version, file.file_minor_version),
        )

    @property
    def file_schema(self) -> pa.Schema:
        """The schema of its files: a deleted row has no value, even if the column may not be null."""
        return pa.schema([self.field.with_nullable(True)])

    def file_of(self, fragment: FragmentMetadata) -> DataFile | None:
        """Return the file of a fragment that has the column; None if all its values are null."""
        return next((file for file in fragment.files if set(file.fields) & set(self.ids)), None)


@answer_class
@dataclass(frozen=True, slots=True)
class ColumnFile:
    """A written file, which isn't committed yet."""

    fragment: int
    """The id of its fragment."""
    file: DataFile
    depends_on: frozenset[int] | None
    """The ids of the fields that the values depend on, the column's own included; None means all."""
    sources: frozenset[tuple[int, str]]
    """These fields, with the fragment's files that had them."""
    rows: int
    """The number of computed values."""
    nulls: int
    """How many rows of the fragment have no value."""
    offsets: bytes | None = field(repr=False)
    """The positions of the computed values, as a serialized bitmap; None if rows have no stable ids."""
    deletions: str | None
    """What identifies the fragment's deletions at that version, see `deletions_of`; None if it had none."""
    deleted: bytes | None = field(repr=False)
    """The positions of the rows that were deleted then, of which the file has no values; as a bitmap, too."""

    @property
    def path(self) -> str:
        """The name of the file."""
        return self.file.path

    def applies_to(self, fragment: LanceFragment | None) -> bool:
        """Return whether a fragment has the files that the values were computed from, and no other rows.

        A restore may have brought rows back, of which the file has no values.

        Args:
            fragment: the fragment at the newest version; None if there is none of this id.
        """
        if fragment is None or files_of(fragment.metadata, self.depends_on) != self.sources:
            return False
        if self.deleted is None or deletions_of(fragment.metadata) == self.deletions:
            return True
        return _read(self.deleted).issubset(deleted_offsets(fragment))

    def applied_to(self, fragment: FragmentMetadata, ids: Sequence[int]) -> FragmentMetadata:
        """Return the fragment with this file in place of its former values of the column.

        Args:
            fragment: the fragment at the newest version, whose deleted rows stay deleted.
            ids: the ids of the column and of its nested fields.
        """
        others = [_without(file, frozenset(ids)) for file in fragment.files]
        return replace(fragment, files=[*(file for file in others if file is not None), self.file])


def field_ids(dataset: LanceDataset, column: str) -> tuple[int, ...]:
    """Return the ids of a column and of its nested fields, parents first; none if there is no such column."""

    def walk(field: Any) -> Iterator[int]:
        yield field.id()
        for child in field.children():
            yield from walk(child)

    found = dataset.lance_schema.field(column)
    return () if found is None else tuple(walk(found))


def files_of(fragment: FragmentMetadata, ids: frozenset[int] | None) -> frozenset[tuple[int, str]]:
    """Return fields of a fragment with the files that have their values; None means all fields."""
    return frozenset(
        (number, file.path)
        for file in fragment.files
        for number in file.fields
        if number != _TOMBSTONE and (ids is None or number in ids)
    )


def deleted_offsets(fragment: LanceFragment) -> Bitmap:
    """Return the positions of a fragment's deleted rows; of its files, only the deletion file is read."""
    from lance.bitmap import Bitmap

    is_deleted = np.ones(fragment.physical_rows, np.bool_)
    for batch in fragment.scanner(columns=[], with_row_address=True).to_batches():
        is_deleted[_positions(batch)] = False
    return Bitmap(np.flatnonzero(is_deleted).tolist())


@dataclass(frozen=True, slots=True)
class ColumnFileInfo:
    """Metadata stored in a column file."""

    nulls: int | None = None
    """How many rows had no value, not counting deleted rows; None if it isn't known."""
    execution_id: str = ""


def write_column(
    dataset: DatasetRef,
    layout: ColumnLayout,
    batches: Iterator[pa.RecordBatch],
    info: Callable[[], ColumnFileInfo],
) -> DataFile:
    """Write a file from the values of all rows of a fragment, which are never all in memory.

    Args:
        dataset: the dataset.
        layout: the column.
        batches: its values in the order of the rows; null for deleted rows.
        info: returns the metadata to store in the file, once all batches were taken.
    """
    from lance.file import LanceFileWriter
    from lance.fragment import DataFile

    name = f"{COMPUTED_FILES}{uuid.uuid4().hex}.lance"
    schema = layout.file_schema
    version = ".".join(map(str, layout.format))
    path = f"{dataset.location}/data/{name}"
    with LanceFileWriter(path, schema, version=version, **_store(dataset)) as writer:
        for batch in batches:
            writer.write_batch(uncut(batch))
        stored = info()
        writer.add_schema_metadata(_NULLS, str(stored.nulls))
        writer.add_schema_metadata(_EXECUTION_ID, stored.execution_id)
    return DataFile(name, list(layout.fields), list(layout.indices), *layout.format, writer.size_bytes)


def _store(dataset: DatasetRef) -> dict[str, Any]:
    options = dataset.storage_options
    return {"storage_options": snapshot(options) or None, **vendor_arguments(dataset.location, options)}


def read_file_info(
    dataset: DatasetRef, opened: LanceDataset, files: Sequence[DataFile]
) -> dict[str, ColumnFileInfo]:
    """Return the metadata stored in files, by their names: one or two small reads each.

    Args:
        dataset: the dataset.
        opened: the dataset at the version that has the files; a clone's files may be its source's.
        files: the files.

    Raises:
        InvalidTableStateError: (19) a file's name isn't a path below the dataset's location.
    """
    from lance.file import LanceFileReader

    def read(location: str) -> ColumnFileInfo:
        reader = LanceFileReader(location, **_store(dataset))
        stored = reader.metadata().schema.metadata or {}
        nulls = stored.get(_NULLS.encode())
        return ColumnFileInfo(
            None if nulls is None else int(nulls), stored.get(_EXECUTION_ID.encode(), b"").decode()
        )

    computed = [file for file in files if file.path.startswith(COMPUTED_FILES)]
    locations = data_file_locations(opened, dataset.location, computed)
    with ThreadPoolExecutor(_READERS, thread_name_prefix="lance-file-info") as pool:
        return dict(zip((file.path for file in computed), pool.map(read, locations), strict=True))


def _without(file: DataFile, ids: frozenset[int]) -> DataFile | None:
    from lance.fragment import DataFile

    if not ids & set(file.fields):
        return file
    fields = [_TOMBSTONE if number in ids else number for number in file.fields]
    if all(number == _TOMBSTONE for number in fields):
        return None
    columns, sizes = file.column_indices, (file.file_size_bytes, file.base_id)
    return DataFile(file.path, fields, columns, file.file_major_version, file.file_minor_version, *sizes)


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
        if fragment is None:  # a bug: the driver has found the fragment at this version
            raise RuntimeError(f"version {self.version} has no fragment {self.fragment}")
        condition = request.condition
        if condition is not None:
            matching = matching_rows(fragment, condition)
            if not matching:
                return None
            condition = None if matching == fragment.metadata.num_rows else condition
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
            offsets=_serialized(_bitmap(values.offsets)) if dataset.has_stable_row_ids else None,
            deletions=(deletions := deletions_of(fragment.metadata)),
            deleted=None if deletions is None else _serialized(deleted_offsets(fragment)),
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
    except Exception as error:  # the user's function may raise anything, also while it is loaded
        raise _Failed(FunctionFailure(f"{type(error).__name__}: {error}", is_invalid=False)) from error


def _bitmap(offsets: list[Offsets]) -> Bitmap:
    from lance.bitmap import Bitmap

    return Bitmap(np.concatenate(offsets).tolist() if offsets else [])


def _serialized(bitmap: Bitmap) -> bytes:
    """Return a bitmap as Lance wants it: in the portable format of Roaring."""
    # The class returns that format only as a part of its pickled form.
    pickled: Any = bitmap.__reduce__()
    serialized: bytes = pickled[1][0]
    return serialized


def _read(serialized: bytes) -> Bitmap:
    from lance import bitmap

    bitmaps: Any = bitmap.Bitmap  # its stub lacks the function
    found: Bitmap = bitmaps._from_bytes(serialized)
    return found
