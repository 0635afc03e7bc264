"""Planning on the driver: inspect every file, check that all have one schema, divide the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.type_names import parse_type
from airflow_provider_lancens.spark.write.files.file_system import SourceFile, find_files, open_file
from airflow_provider_lancens.spark.write.files.fingerprint import fingerprint_of_found
from airflow_provider_lancens.spark.write.files.formats import ArrowFile, FileFormat, InspectedFile
from airflow_provider_lancens.spark.write.files.parquet_files import Parquet
from airflow_provider_lancens.spark.write.files.partition_folders import (
    NO_PARTITIONS,
    Partitions,
    Values,
    partitions_of,
)
from airflow_provider_lancens.spark.write.files.projection import Projection, projection_of
from airflow_provider_lancens.spark.write.files.text_formats import Csv, Json

_PARALLEL = 16
"""Files that are inspected in parallel: on an object store each takes a few requests."""


class FileUnit(NamedTuple):
    """A piece of a file, the smallest unit of work."""

    file: SourceFile
    number: int
    bytes: int
    values: Values = ()
    """The values of the partition columns."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """All work of one write."""

    format: FileFormat
    files: pa.Schema
    """The common schema of all files."""
    shape: Projection
    units: Sequence[FileUnit]
    partitions: pa.Schema
    """The columns that the files' folders name."""


def plan(
    source: FileSource, options: Mapping[str, str], *, zone: str = "UTC", fingerprint: str | None = None
) -> FilePlan:
    """Inspect all files of a source, and plan the write.

    Args:
        source: the files, with their projection.
        options: Lance's storage options to reach them.
        zone: the time zone of times in the names of folders.
        fingerprint: that of the files as they must still be, see `fingerprint_files`; None allows any.

    Raises:
        InvalidInputError: (13) there is no file, one can't be read, or a type or the filter is invalid.
        TableColumnNotFoundError: (12) a column is named that the files don't have.
        ConcurrentModificationError: (14) a file was changed meanwhile.
        TableSchemaValidationError: (20) the files don't have one schema; the message names the file.
        ServiceUnavailableError: (17) the storage returned an unexpected response, or none.
    """
    inspector = _Inspector(source, _format(source), options)
    found = find_files(source.paths, options)
    if fingerprint is not None and fingerprint_of_found(source, found) != fingerprint:
        raise spec_errors.ConcurrentModificationError(
            f"files {', '.join(source.paths)}: they were changed after their fingerprint was computed; "
            "run it again with the new one"
        )
    # As in Spark, an empty file has no rows, regardless of the format.
    files = [file for file in found if file.bytes]
    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="lance-files") as pool:
        inspected_files = dict(zip(files, pool.map(inspector.inspect, files), strict=True))
    schema = _common_schema(inspected_files) if inspected_files else inspector.format.schema
    if schema is None:
        raise spec_errors.InvalidInputError("paths: all files are empty, so their columns are unknown")
    partitions = _partitions(source, found, schema, zone)
    units = [
        FileUnit(file, piece.number, piece.bytes or file.bytes, partitions.values.get(file.location, ()))
        for file, inspected in inspected_files.items()
        for piece in inspected.pieces
    ]
    shape = projection_of(source, pa.schema([*schema, *partitions.columns]))
    return FilePlan(inspector.format, schema, shape, units, partitions.columns)


def _partitions(source: FileSource, files: Sequence[SourceFile], schema: pa.Schema, zone: str) -> Partitions:
    if source.partitions is False:
        return NO_PARTITIONS
    found = partitions_of(files, source.partitions if isinstance(source.partitions, Mapping) else {}, zone)
    if twice := [name for name in found.columns.names if name in schema.names]:
        raise spec_errors.InvalidInputError(
            f"column {', '.join(twice)}: it is in the files and in the names of their folders; pass "
            "partitions=False to read that of the files"
        )
    return found


def shares(units: Sequence[FileUnit], count: int) -> list[list[FileUnit]]:
    """Divide the units, in order, into at most `count` shares of about the same size."""
    whole = sum(unit.bytes for unit in units) or 1
    cut: list[list[FileUnit]] = [[] for _ in range(count)]
    before = 0
    for unit in units:
        cut[min(count - 1, (2 * before + unit.bytes) * count // (2 * whole))].append(unit)
        before += unit.bytes
    return [share for share in cut if share]


@dataclass(frozen=True, slots=True)
class _Inspector:
    source: FileSource
    format: FileFormat
    options: Mapping[str, str]

    def inspect(self, file: SourceFile) -> InspectedFile:
        try:
            inspected = self.format.inspect(partial(open_file, file, self.options))
            _check_names(inspected.schema.names)
        except RowError as error:
            raise spec_errors.InvalidInputError(f"file {file.location}: {error}") from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise spec_errors.InvalidInputError(
                f"file {file.location}: cannot read it as {self.source.format}: {error}"
            ) from error
        return inspected


def _check_names(names: Sequence[str]) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"two columns are named {', '.join(repeated)}")


def _format(source: FileSource) -> FileFormat:
    if source.format == "parquet":
        return Parquet()
    if source.format == "arrow":
        return ArrowFile()
    types = source.schema
    schema = types and pa.schema([(n, parse_type(t, f"schema[{n!r}]")) for n, t in types.items()])
    return Json(schema) if source.format == "json" else Csv(source.delimiter, source.header, schema)


def _common_schema(files: Mapping[SourceFile, InspectedFile]) -> pa.Schema:
    """Return the common schema of all files; in text files, a column without any value has no type."""
    first, *_ = files
    common = {field.name: field for field in files[first].schema}
    for file, inspected in files.items():
        other = {field.name: field for field in inspected.schema}
        differences = _differences(common, other)
        if differences:
            raise spec_errors.TableSchemaValidationError(
                f"file {file.location}: its schema differs from that of {first.location}; columns: "
                f"{'; '.join(differences)}"
            )
        common = {n: other[n] if pa.types.is_null(field.type) else field for n, field in common.items()}
    return pa.schema([pa.field(field.name, field.type) for field in common.values()])


def _differences(common: Mapping[str, pa.Field], other: Mapping[str, pa.Field]) -> list[str]:
    reasons = [f"{name} is missing" for name in common if name not in other]
    reasons += [f"{name} is unexpected" for name in other if name not in common]
    return reasons + [
        f"{name} is {other[name].type}, not {field.type}"
        for name, field in common.items()
        if name in other
        and other[name].type != field.type
        and not (pa.types.is_null(field.type) or pa.types.is_null(other[name].type))
    ]
