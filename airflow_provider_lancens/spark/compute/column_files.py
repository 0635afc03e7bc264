"""Files with one column of one fragment: their names and layout, and the fragment that refers to them.

A fragment is a set of files with different columns of the same rows. A computed column is written as one more
file, for all rows in their order, those that are deleted included; the others aren't touched. How many of its
values are null is noted in the file, so that a run that looks for missing values needn't read it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.spark.maintenance.task_answers import answer_class
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef, vendor_arguments
from airflow_provider_lancens.spark.table.history import COMPUTED_FILES

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset
    from lance.fragment import DataFile

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
    """The ids of those that have values in a file."""
    indices: tuple[int, ...]
    """Where a file has them."""
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

    @property
    def path(self) -> str:
        """The name of the file."""
        return self.file.path

    def applies_to(self, fragment: FragmentMetadata | None) -> bool:
        """Return whether a fragment still has the files that the values were computed from."""
        return fragment is not None and files_of(fragment, self.depends_on) == self.sources

    def applied_to(self, fragment: FragmentMetadata, ids: Sequence[int]) -> FragmentMetadata:
        """Return the fragment with this file in place of what it had of the column.

        Args:
            fragment: the fragment at the newest version, whose deleted rows stay deleted.
            ids: the ids of the column and of its nested fields.
        """
        others = [_without(file, frozenset(ids)) for file in fragment.files]
        return replace(fragment, files=[*(file for file in others if file is not None), self.file])


def field_ids(dataset: LanceDataset, column: str) -> tuple[int, ...]:
    """Return the ids of a column and of its nested fields, parents first; none if there is no such column."""

    def walk(one: Any) -> Iterator[int]:
        yield one.id()
        for child in one.children():
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


@dataclass(frozen=True, slots=True)
class ColumnFileInfo:
    """Metadata stored in a column file."""

    nulls: int | None = None
    """How many rows had no value, of those that weren't deleted; None if it isn't known."""
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
        batches: its values in the order of the rows; those of deleted rows are null.
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
            writer.write_batch(batch)
        stored = info()
        writer.add_schema_metadata(_NULLS, str(stored.nulls))
        writer.add_schema_metadata(_EXECUTION_ID, stored.execution_id)
    return DataFile(name, list(layout.fields), list(layout.indices), *layout.format, writer.size_bytes)


def _store(dataset: DatasetRef) -> dict[str, Any]:
    options = dataset.storage_options
    return {"storage_options": snapshot(options) or None, **vendor_arguments(dataset.location, options)}


def read_file_info(dataset: DatasetRef, files: Sequence[DataFile]) -> dict[str, ColumnFileInfo]:
    """Return the metadata stored in files, by their names: one or two small reads each."""
    from lance.file import LanceFileReader

    def read(name: str) -> ColumnFileInfo:
        reader = LanceFileReader(f"{dataset.location}/data/{name}", **_store(dataset))
        stored = reader.metadata().schema.metadata or {}
        nulls = stored.get(_NULLS.encode())
        return ColumnFileInfo(
            None if nulls is None else int(nulls), stored.get(_EXECUTION_ID.encode(), b"").decode()
        )

    names = [file.path for file in files if file.path.startswith(COMPUTED_FILES)]
    with ThreadPoolExecutor(_READERS, thread_name_prefix="lance-file-info") as pool:
        return dict(zip(names, pool.map(read, names), strict=True))


def _without(file: DataFile, ids: frozenset[int]) -> DataFile | None:
    from lance.fragment import DataFile

    if not ids & set(file.fields):
        return file
    fields = [_TOMBSTONE if number in ids else number for number in file.fields]
    if all(number == _TOMBSTONE for number in fields):
        return None
    columns, sizes = file.column_indices, (file.file_size_bytes, file.base_id)
    return DataFile(file.path, fields, columns, file.file_major_version, file.file_minor_version, *sizes)
