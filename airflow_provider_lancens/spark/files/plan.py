"""The driver's part: look at every file, agree on one schema, share the pieces out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from lance_namespace.errors import InvalidInputError, TableSchemaValidationError

from airflow_provider_lancens.spark.files.formats import ArrowFile, FileFormat, Inspected, Parquet
from airflow_provider_lancens.spark.files.shape import Shape, shape_of
from airflow_provider_lancens.spark.files.source import FileSource
from airflow_provider_lancens.spark.files.store import SourceFile, find_files, open_file
from airflow_provider_lancens.spark.files.text import Csv, Json
from airflow_provider_lancens.spark.files.types import parse_type

_LOOKING = 16
"""Files that are looked at side by side: on an object store each look is a few requests."""


class Unit(NamedTuple):
    """A piece of a file, the smallest work there is."""

    location: str
    file_bytes: int
    number: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All work of one write."""

    format: FileFormat
    files: pa.Schema
    """The schema that all files have."""
    shape: Shape
    units: Sequence[Unit]


def plan(source: FileSource, options: Mapping[str, str]) -> Plan:
    """Look at all files of a source.

    Args:
        source: the files, and what to take of them.
        options: Lance's storage options to reach them.

    Raises:
        InvalidInputError: (13) there is no file, one can't be read, or a word can't be understood.
        TableColumnNotFoundError: (12) a column is named that the files don't have.
        TableSchemaValidationError: (20) the files are not of one schema; the message names the file.
        ServiceUnavailableError: (17) the storage didn't answer as expected.
    """
    look = _Look(source, _format(source), options)
    # As in Spark, a file of no bytes is one of no rows, whatever the format.
    files = [file for file in find_files(source.paths, options) if file.bytes]
    with ThreadPoolExecutor(_LOOKING, thread_name_prefix="lance-files") as pool:
        seen = dict(zip(files, pool.map(look.at, files), strict=True))
    schema = _agreed(seen) if seen else look.format.schema
    if schema is None:
        raise InvalidInputError("paths: all files are empty, so nothing tells their columns")
    units = [
        Unit(file.location, file.bytes, piece.number, piece.bytes or file.bytes)
        for file, inspected in seen.items()
        for piece in inspected.pieces
    ]
    return Plan(look.format, schema, shape_of(source, schema), units)


def shares(units: Sequence[Unit], count: int) -> list[list[Unit]]:
    """Cut the units into at most this many shares of about as many bytes each; their order stays."""
    whole = sum(unit.bytes for unit in units) or 1
    cut: list[list[Unit]] = [[] for _ in range(count)]
    before = 0
    for unit in units:
        cut[min(count - 1, (2 * before + unit.bytes) * count // (2 * whole))].append(unit)
        before += unit.bytes
    return [share for share in cut if share]


@dataclass(frozen=True, slots=True)
class _Look:
    source: FileSource
    format: FileFormat
    options: Mapping[str, str]

    def at(self, file: SourceFile) -> Inspected:
        try:
            with open_file(file.location, file.bytes, self.options) as opened:
                inspected = self.format.inspect(opened)
            _check_names(inspected.schema.names)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InvalidInputError(f"file {file.location}: as {self.source.format}: {error}") from error
        return inspected


def _check_names(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two columns are named {', '.join(twice)}")


def _format(source: FileSource) -> FileFormat:
    if source.format == "parquet":
        return Parquet()
    if source.format == "arrow":
        return ArrowFile()
    words = source.schema
    schema = words and pa.schema([(n, parse_type(w, f"schema[{n!r}]")) for n, w in words.items()])
    return Json(schema) if source.format == "json" else Csv(source.delimiter, source.header, schema)


def _agreed(seen: Mapping[SourceFile, Inspected]) -> pa.Schema:
    """The schema of all files; in one of text, a column without any value has no type of its own."""
    first, *_ = seen
    agreed = {field.name: field for field in seen[first].schema}
    for file, inspected in seen.items():
        other = {field.name: field for field in inspected.schema}
        differing = _differing(agreed, other)
        if differing:
            raise TableSchemaValidationError(
                f"file {file.location}: not of the schema of {first.location}; "
                f"columns: {'; '.join(differing)}"
            )
        agreed = {n: other[n] if pa.types.is_null(field.type) else field for n, field in agreed.items()}
    return pa.schema([pa.field(field.name, field.type) for field in agreed.values()])


def _differing(agreed: Mapping[str, pa.Field], other: Mapping[str, pa.Field]) -> list[str]:
    reasons = [f"{name} is missing" for name in agreed if name not in other]
    reasons += [f"{name} is too much" for name in other if name not in agreed]
    return reasons + [
        f"{name} is {other[name].type}, not {field.type}"
        for name, field in agreed.items()
        if name in other
        and other[name].type != field.type
        and not (pa.types.is_null(field.type) or pa.types.is_null(other[name].type))
    ]
