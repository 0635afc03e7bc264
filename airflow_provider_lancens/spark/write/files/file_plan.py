"""Planning on the driver: inspect every file, check that all have one schema, divide the work.

Columns whose values are in the names of folders, such as ``day=2026-11-01``, are read as Spark reads them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.spark.file_source import FileSource, Format
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.type_names import parse_type
from airflow_provider_lancens.spark.write.files.file_system import SourceFile, find_files, open_file
from airflow_provider_lancens.spark.write.files.formats import NO_ROWS, ArrowFile, FileFormat, InspectedFile
from airflow_provider_lancens.spark.write.files.parquet_files import Parquet
from airflow_provider_lancens.spark.write.files.projection import Projection, projection_of
from airflow_provider_lancens.spark.write.files.text_formats import Csv, Json

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace


_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_REAL = re.compile(rf"\s*(-?(?:NaN|Infinity|{_DECIMAL}))[dDfF]?\s*")
"""As Java reads a double: with spaces around it, and with the suffix of a literal."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9])?")
"""Spark takes a longer fraction for text."""
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_MOMENT = pa.timestamp("us", "UTC")
_DIGITS = 38

Values = tuple[Any, ...]
"""The values of a file's rows, of all partition columns in their order."""


class Partitions(NamedTuple):
    """The partition columns of files."""

    columns: pa.Schema
    values: Mapping[str, Values]
    """The values by the files' locations; none if there are no such columns."""


NO_PARTITIONS = Partitions(pa.schema([]), {})


def partitions_of(
    files: Sequence[SourceFile], types: Mapping[str, str], zone: str, argument: str = "partitions"
) -> Partitions:
    """Return the columns in the names of the files' folders.

    Args:
        files: the files.
        types: names of types by column; the types of other columns are inferred.
        zone: the time zone of times, the session's.
        argument: the name of the argument `types`, for messages.

    Raises:
        TableColumnNotFoundError: (12) a type is given of a column that isn't in the folders' names.
        InvalidInputError: (13) the files' folders have different columns, or a value doesn't fit its type.
    """
    texts = {file.location: _texts(file) for file in files}
    names = _common_names(texts)
    given = {name: parse_type(text, f"{argument}[{name!r}]") for name, text in types.items()}
    if missing := [name for name in given if name not in names]:
        raise spec_errors.TableColumnNotFoundError(
            f"{argument}: no folder of the files names {', '.join(missing)}; "
            f"they name: {', '.join(names) or 'no column'}"
        )
    columns = []
    converted = []
    for name in names:
        found = [values[name] for values in texts.values()]
        column = given.get(name) or _common_type([text for text in found if text is not None])
        columns.append(pa.field(name, column))
        read = {text: None if text is None else _value(text, column, zone, name) for text in set(found)}
        converted.append([read[text] for text in found])
    rows = zip(*converted, strict=True) if names else iter(())
    return Partitions(pa.schema(columns), dict(zip(texts, rows, strict=False)))


def _texts(file: SourceFile) -> dict[str, str | None]:
    folders = file.location.removeprefix(file.base).strip("/").split("/")[:-1]
    found: dict[str, str | None] = {}
    ended = False
    for folder in reversed(folders):
        name, sign, text = folder.partition("=")
        if not sign:
            ended = bool(found)
            continue
        name, text = unquote(name), unquote(text)
        if not name or not text:
            raise _unreadable(file, f"folder {folder!r}: expected a name and a value")
        if ended:
            raise _unreadable(file, f"folder {folder!r} is above one that names no column")
        if name in found:
            raise _unreadable(file, f"two folders name {name}")
        found[name] = None if text == _NULL else text
    return dict(reversed(found.items()))


def _common_names(texts: Mapping[str, Mapping[str, str | None]]) -> list[str]:
    first = next(iter(texts), None)
    for location, values in texts.items():
        if first is not None and list(values) != list(texts[first]):
            raise spec_errors.InvalidInputError(
                f"file {location}: its folders name {_listed(values)}, but those of {first} name "
                f"{_listed(texts[first])}; write them separately, or pass partitions=False to read "
                "only the files"
            )
    return [] if first is None else list(texts[first])


def _listed(values: Mapping[str, str | None]) -> str:
    return f"the columns {', '.join(values)}" if values else "no column"


def _unreadable(file: SourceFile, reason: str) -> spec_errors.InvalidInputError:
    return spec_errors.InvalidInputError(
        f"file {file.location}: {reason}; pass partitions=False to read only the files"
    )


def _common_type(texts: Sequence[str]) -> pa.DataType:
    kinds = {_inferred(text) for text in texts}
    if not kinds:
        return pa.null()  # no folder has a value
    common = kinds.pop()
    for kind in kinds:
        common = _wider(common, kind)
    return common


def _inferred(text: str) -> pa.DataType:
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return pa.int32() if -(2**31) <= int(text) < 2**31 else pa.int64()
    if (digits := _whole_digits(text)) is not None:
        return pa.decimal128(digits, 0)
    if _REAL.fullmatch(text):
        return pa.float64()
    for pattern, arrow in ((_TIME, _MOMENT), (_DATE, pa.date32())):
        if pattern.fullmatch(text) and _is_time(text):
            return arrow
    return pa.string()


def _whole_digits(text: str) -> int | None:
    """Return the number of digits of a whole number; None if it is another one, or has too many."""
    try:
        exponent = (
            Decimal(text).as_tuple().exponent if _REAL.fullmatch(text) and text == text.strip() else "n"
        )
    except InvalidOperation:
        return None
    if not isinstance(exponent, int) or exponent < 0 or exponent > _DIGITS:
        return None
    digits = len(str(abs(int(Decimal(text)))))
    return digits if digits <= _DIGITS else None


def _is_time(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of a column with values of two types; text if no other one represents both."""
    integers = {pa.int32(): 10, pa.int64(): 20}
    kinds = {left, right}
    if kinds <= set(integers):
        return pa.int64()
    if kinds == {pa.int32(), pa.float64()}:
        return pa.float64()
    if kinds == {pa.date32(), _MOMENT}:
        return _MOMENT
    digits = [integers.get(kind) or (kind.precision if pa.types.is_decimal(kind) else None) for kind in kinds]
    if all(number is not None for number in digits):
        return pa.decimal128(max(number or 0 for number in digits), 0)
    return pa.string()


def _value(text: str, column: pa.DataType, zone: str, name: str) -> Any:
    try:
        if pa.types.is_timestamp(column) and column.tz is not None:
            return _in_zone(text, column, zone)
        if pa.types.is_integer(column):
            return pa.scalar(str(int(text))).cast(column).as_py()
        if pa.types.is_decimal(column):
            return pa.scalar(Decimal(text), column).as_py()
        if pa.types.is_floating(column) and (real := _REAL.fullmatch(text)):
            return float(real[1])
        return pa.scalar(text).cast(column).as_py()
    except (pa.ArrowException, ValueError, ArithmeticError) as error:
        raise spec_errors.InvalidInputError(
            f"partitions: {name}={text}: the value doesn't fit {column}: {error}"
        ) from error


def _in_zone(text: str, column: pa.DataType, zone: str) -> Any:
    local = pa.scalar(text).cast(pa.timestamp("us")).as_py()
    moment = local.replace(tzinfo=_zone(zone)).astimezone(dt.UTC)
    return pa.scalar(moment, column).as_py()


def _zone(name: str) -> dt.tzinfo:
    if match := _OFFSET.fullmatch(name):
        sign = -1 if match[1] == "-" else 1
        return dt.timezone(sign * dt.timedelta(hours=int(match[2]), minutes=int(match[3] or 0)))
    return ZoneInfo(name)


_IGNORED = frozenset({"storage_options", "tasks"})
"""Fields that do not affect the rows."""
_MARK = "files-"


def fingerprint_files(
    source: FileSource, namespace: NamespaceSpec | LanceNamespace, table: TableId | str
) -> str | None:
    """Return a `fingerprint` for a write of files, which changes if a file or a field of the source does.

    Args:
        source: the files.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: the table to write to, whose storage options may be needed to reach the files.

    Returns:
        Text to compare; None if a path has no files any more, so that there is nothing to compare.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        ServiceUnavailableError: (17) the storage returned an unexpected response, or none.
    """
    with resolved_table(namespace, table) as target:
        return fingerprint_of_files(source, target.dataset.storage_options)


def fingerprint_of_files(source: FileSource, storage_options: Mapping[str, str]) -> str | None:
    """Return the same as `fingerprint_files`, given the storage options of the table to write to."""
    try:
        files = find_files(source.paths, source.options_over(storage_options))
    except spec_errors.InvalidInputError:
        return None
    return fingerprint_of_found(source, files)


def fingerprint_of_found(source: FileSource, files: Sequence[SourceFile]) -> str:
    """Return the same as `fingerprint_files`, given the files that the source's paths match."""
    settings = {f.name: getattr(source, f.name) for f in fields(source) if f.name not in _IGNORED}
    return _MARK + hashlib.sha256(repr((sorted(files), settings)).encode()).hexdigest()


def is_of_files(fingerprint: str | None) -> bool:
    """Return whether text is a fingerprint of files, rather than one of the caller's own."""
    return fingerprint is not None and fingerprint.startswith(_MARK)


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
        fingerprint: the fingerprint that the files must still have, see `fingerprint_files`; None allows any.

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
    inspected_files = {file: each for file, each in inspected_files.items() if each != NO_ROWS}
    inferred = source.format in ("csv", "json") and source.schema is None
    schema = _common_schema(inspected_files, inferred) if inspected_files else inspector.format.schema
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
    types = source.schema
    schema = types and pa.schema([(n, parse_type(t, f"schema[{n!r}]")) for n, t in types.items()])
    readers: Mapping[Format, Callable[[], FileFormat]] = {
        "parquet": Parquet,
        "arrow": ArrowFile,
        "json": lambda: Json(schema),
        "csv": lambda: Csv(source.delimiter, source.header, schema),
    }
    return readers[source.format]()


def _common_schema(files: Mapping[SourceFile, InspectedFile], inferred: bool) -> pa.Schema:
    """Return the common schema of all files; in text files, a column without any value has no type."""
    first, *_ = files
    common = {field.name: field for field in files[first].schema}
    for file, inspected in files.items():
        other = {field.name: field for field in inspected.schema}
        differences = _differences(common, other)
        if differences:
            of_types = inferred and common.keys() == other.keys()
            hint = (
                ". They were inferred from the rows of each file: give the types by schema"
                if of_types
                else ""
            )
            raise spec_errors.TableSchemaValidationError(
                f"file {file.location}: its schema differs from that of {first.location}; columns: "
                f"{'; '.join(differences)}{hint}"
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
