"""Whether the columns of rows fit a table, and how others are merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.unreadable_columns import column_problems
from airflow_provider_lancens.spark.blobs import fits_blob, is_blob

if TYPE_CHECKING:
    from lance import LanceDataset


def alter(dataset: LanceDataset, types: Mapping[Path, pa.DataType]) -> None:
    """Convert columns or nested fields to other types, in one commit."""
    changes: list[Any] = [{"path": lance_path(path), "data_type": to} for path, to in types.items()]
    dataset.alter_columns(*changes)


def file_format(dataset: LanceDataset) -> tuple[int, int]:
    """Return the version of a dataset's file format."""
    major, _, minor = dataset.data_storage_version.partition(".")
    return (int(major), int(minor or 0)) if major.isdecimal() else (0, 1)


def indices_over(dataset: LanceDataset, paths: Collection[Path]) -> list[tuple[str, Path]]:
    """Return the indices on any of these columns or nested fields, with the path of the indexed one."""
    by_id = dict(_paths(dataset.lance_schema.fields()))
    indexed = [
        (index.name, by_id[number])
        for index in dataset.describe_indices()
        for number in index.fields
        if number in by_id
    ]
    return [(name, path) for name, path in indexed if overlaps(path, paths)]


def _paths(fields: Iterable[Any], parent: Path = ()) -> Iterator[tuple[int, Path]]:
    for lance_field in fields:
        path = (*parent, lance_field.name())
        yield lance_field.id(), path
        yield from _paths(lance_field.children(), path)


def with_vectors(schema: pa.Schema, vectors: Mapping[str, int]) -> pa.Schema:
    """Return the schema with these array columns as fixed-size lists of the given dimension.

    Raises:
        InvalidInputError: (13) a column isn't an array of floating-point numbers.
    """
    types = dict(zip(schema.names, schema.types, strict=True))
    as_vectors = {name: _vector(name, types.get(name), dimension) for name, dimension in vectors.items()}
    return pa.schema([field.with_type(as_vectors.get(field.name, field.type)) for field in schema])


def _vector(name: str, arrow: pa.DataType | None, dimension: int) -> pa.DataType:
    if arrow is not None and pa.types.is_fixed_size_list(arrow) and arrow.list_size == dimension:
        return arrow  # files may have vectors
    if arrow is None or not pa.types.is_list(arrow) or not pa.types.is_floating(arrow.value_type):
        found = "there is no such column" if arrow is None else f"it is {arrow}"
        raise spec_errors.InvalidInputError(
            f"vector_columns[{name!r}]: expected an array of float or double; {found}"
        )
    return pa.list_(arrow.value_type, dimension)


def check_columns(table: str, schema: pa.Schema) -> None:
    """Check that Lance can store these columns and read them back.

    Args:
        table: the table's identifier, for the message.
        schema: the columns of the rows to write.

    Raises:
        InvalidInputError: (13) there is no column; a name is empty, reserved, not unique, or has a character
            that Lance can't store; a struct has no fields; or a column can't be written, or read back. The
            message names each such column.
    """
    if not schema.names:
        raise spec_errors.InvalidInputError(
            f"table {table}: the rows have no columns; a table must have at least one column"
        )
    if problems := column_problems(schema):
        raise spec_errors.InvalidInputError(
            f"table {table}: {'; '.join(problems)}. Rename, cast or drop these columns"
        )


_FLOAT_BITS = {pa.float16(): 11, pa.float32(): 24, pa.float64(): 53}
"""Floating-point types by the size in bits of the integers that they all represent exactly."""
_TEXT = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_UNITS = ("s", "ms", "us", "ns")


def schema_mismatch(
    table: str, reasons: Sequence[str], *, may_merge: bool = False
) -> spec_errors.TableSchemaValidationError:
    """Return the error for rows that don't fit a table's columns.

    Args:
        table: the table's identifier.
        reasons: why they don't, by column.
        may_merge: whether to name the argument that lets the columns differ.
    """
    merge = (
        ", or pass schema_mode='merge', which adds the columns that the table lacks, fills those that the "
        "rows lack with null, and widens types"
    )
    return spec_errors.TableSchemaValidationError(
        f"table {table}: the rows do not match its columns: {'; '.join(reasons)}. Select, cast "
        f"or rename the columns of the rows{merge if may_merge else ''}"
    )


def mismatches(rows: pa.Schema, existing: pa.Schema, *, time_zone_known: bool = True) -> list[str]:
    """Return why Lance would refuse rows, or data would be lost.

    Columns are matched by name, in any order.

    Args:
        rows: the schema of the rows as Arrow.
        existing: the table's schema.
        time_zone_known: see `fits_column`.

    Returns:
        A reason per column; none if the rows fit.
    """
    source = {field.name: field for field in rows}
    target = {field.name: field for field in existing}
    reasons = [f"{name} is missing in the rows" for name in target if name not in source]
    reasons += [f"{name} is not in the table" for name in source if name not in target]
    reasons += [f"{name} is in the rows {n} times" for name, n in Counter(rows.names).items() if n > 1]
    for name in (name for name in target if name in source):
        rows_type, table_type = source[name].type, target[name].type
        if rows_type != table_type and not fits_column(
            rows_type, table_type, time_zone_known=time_zone_known
        ):
            reasons.append(f"{name} is {rows_type}, but {table_type} in the table")
        elif pa.types.is_null(rows_type) and not target[name].nullable:
            reasons.append(f"{name} is {rows_type}, but the table does not allow nulls there")
    return reasons


def fits_column(source: pa.DataType, target: pa.DataType, *, time_zone_known: bool = True) -> bool:
    """Return whether a column of one type can be written to a column of another type.

    A top-level column has more conversions than a value inside an array, a map or a struct: an array also
    fits a vector, where each length is checked on write (nested, Arrow crashes on vectors that are all null,
    see `row_casts`), dictionaries are decoded, and a date fits a timestamp with a time zone.

    Args:
        source: the type of the rows' column.
        target: the type of the table's column.
        time_zone_known: whether the time zone is known in which a date becomes a timestamp at midnight.
    """
    if is_blob(target):
        return fits_blob(source)
    if pa.types.is_dictionary(source) and not pa.types.is_dictionary(target):
        return fits_column(source.value_type, target, time_zone_known=time_zone_known)
    if pa.types.is_fixed_size_list(target):
        vector = pa.types.is_fixed_size_list(source) and source.list_size == target.list_size
        if vector or pa.types.is_list(source):
            return fits(source.value_type, target.value_type)
    if source == pa.date32() and is_zoned_timestamp(target):
        return time_zone_known
    return fits(source, target)


def is_zoned_timestamp(arrow: pa.DataType) -> bool:
    """Return whether a type is a timestamp with a time zone; to cast a date to it, a time zone is needed."""
    return pa.types.is_timestamp(arrow) and arrow.tz is not None


def fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether another type can represent all values of a type."""
    return source == target or pa.types.is_null(source) or any(rule(source, target) for rule in _RULES)


def _same_family(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_fixed_size_binary(source):
        return target in _BYTES
    return any(source in family and target in family for family in (_TEXT, _BYTES))


def _wider_integer(source: pa.DataType, target: pa.DataType) -> bool:
    if not (pa.types.is_integer(source) and pa.types.is_integer(target)):
        return False
    loses_sign = pa.types.is_signed_integer(source) and pa.types.is_unsigned_integer(target)
    return not loses_sign and _integer_bits(source) <= _integer_bits(target)


def _wider_float(source: pa.DataType, target: pa.DataType) -> bool:
    bits = _integer_bits(source) if pa.types.is_integer(source) else _FLOAT_BITS.get(source)
    return bits is not None and bits <= _FLOAT_BITS.get(target, 0)


def _wider_decimal(source: pa.DataType, target: pa.DataType) -> bool:
    if not pa.types.is_decimal(target):
        return False
    if pa.types.is_integer(source):
        digits, scale = len(str(2 ** _integer_bits(source))), 0
    elif pa.types.is_decimal(source):
        digits, scale = source.precision - source.scale, source.scale
    else:
        return False
    return bool(target.scale >= scale and target.precision - target.scale >= digits)


def _finer_time(source: pa.DataType, target: pa.DataType) -> bool:
    if source == pa.date32():
        return bool(target == pa.date64() or (pa.types.is_timestamp(target) and target.tz is None))
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        # From nanoseconds to Spark's microseconds the cast checks each value, also for overflow.
        same_zones = (source.tz is None) == (target.tz is None)
        return same_zones and bool(target.unit == "us" or _is_finer(source, target))
    same_kind = any(kind(source) and kind(target) for kind in (pa.types.is_time, pa.types.is_duration))
    return same_kind and _is_finer(source, target)


def _wider_nested(source: pa.DataType, target: pa.DataType) -> bool:
    if _is_array(source) and _is_array(target):
        return fits(source.value_type, target.value_type)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return fits(source.key_type, target.key_type) and fits(source.item_type, target.item_type)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _fits_struct(source, target)
    return False


def _fits_struct(source: pa.DataType, target: pa.DataType) -> bool:
    fields, target_fields = ([t.field(i) for i in range(t.num_fields)] for t in (source, target))
    # Within a struct the order matters: Arrow casts its fields by position.
    return [f.name for f in fields] == [f.name for f in target_fields] and all(
        fits(a.type, b.type) for a, b in zip(fields, target_fields, strict=True)
    )


def _integer_bits(arrow: pa.DataType) -> int:
    return int(arrow.bit_width) - int(pa.types.is_signed_integer(arrow))


def _is_finer(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(_UNITS.index(source.unit) <= _UNITS.index(target.unit))


def _is_array(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_large_list(arrow))


_RULES: tuple[Callable[[pa.DataType, pa.DataType], bool], ...] = (
    _same_family,
    _wider_integer,
    _wider_float,
    _wider_decimal,
    _finer_time,
    _wider_nested,
)


Path = tuple[str, ...]
"""Names from a column to a nested field; the items of a list are a field too."""

_ADDS_NESTED, _WIDENS_NESTED = (2, 2), (2, 1)
"""File formats from which on Lance adds fields to a struct, and changes the type of one."""


@dataclass(frozen=True, slots=True)
class ColumnMatch:
    """Where the columns of a table are in the rows. Picklable."""

    sources: Mapping[str, str]
    """The rows' columns by the table's columns; a column that isn't here is null in the rows."""
    match_case: bool
    """Whether names that differ only in case are different ones."""

    @property
    def targets(self) -> dict[str, str]:
        """The table's columns by the rows' columns."""
        return {source: name for name, source in self.sources.items()}


@dataclass(slots=True)
class MergePlan:
    """How to merge the columns of rows into a table's."""

    match: ColumnMatch
    schema: pa.Schema
    """The columns of the table once they are merged."""
    additions: list[pa.Field] = field(default_factory=list)
    """Columns to add; an existing column is a struct, or contains one, and lists only its new fields."""
    added: list[tuple[Path, pa.DataType]] = field(default_factory=list)
    """The same one by one, for messages."""
    widenings: list[tuple[Path, pa.DataType, pa.DataType]] = field(default_factory=list)
    """Columns and nested fields to widen, with their types before and after."""
    reasons: list[str] = field(default_factory=list)
    """Why the columns can't be merged, one for each; nothing else of the plan counts then."""

    def __str__(self) -> str:
        adds = ", ".join(f"{shown(path)} ({arrow})" for path, arrow in self.added)
        widens = ", ".join(f"{shown(path)} from {old} to {new}" for path, old, new in self.widenings)
        return "; ".join(text for text in (adds and f"adds {adds}", widens and f"widens {widens}") if text)


def merge_plan(
    rows: pa.Schema,
    table: pa.Schema,
    *,
    match_case: bool = True,
    time_zone_known: bool = True,
    file_format: tuple[int, int] = (2, 2),
) -> MergePlan:
    """Plan how to merge the columns of rows into a table's columns.

    Args:
        rows: the schema of the rows.
        table: the table's schema.
        match_case: whether names that differ only in case are different ones. Even then no column or field
            is added whose name differs from another one's only in case.
        time_zone_known: see `schema_check.fits_column`.
        file_format: the version of the table's file format.
    """
    matched, reasons = _matched(rows, table, (), match_case)
    merging = _Merging(match_case, time_zone_known, file_format, reasons)
    merged = [merging.column(found, rows.field(i) if i is not None else None) for found, i in matched.pairs]
    new = [made for i in matched.new if (made := merging.new_field(rows.field(i), ())) is not None]
    sources = {found.name: rows.field(i).name for found, i in matched.pairs if i is not None}
    sources |= {made.name: made.name for made in new}
    return MergePlan(
        ColumnMatch(sources, match_case),
        pa.schema([*merged, *new], table.metadata),
        [*merging.additions, *new],
        merging.added,
        merging.widenings,
        merging.reasons,
    )


def widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether Lance can change a column of one type to another without losing a value.

    Lance converts no integers to other kinds of numbers, and doesn't check times for overflow.
    """
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_time, _is_bytes)
    if pa.types.is_fixed_size_list(source) and pa.types.is_fixed_size_list(target):
        return source.list_size == target.list_size and widens(source.value_type, target.value_type)
    return any(kind(source) and kind(target) for kind in kinds) and fits(source, target)


def lance_path(path: Path) -> str:
    """Return the path of a column or a nested field as Lance parses it."""
    return ".".join(f"`{name}`" if "." in name else name for name in path)


def shown(path: Path) -> str:
    """Return a path for messages."""
    return ".".join(path)


def overlaps(path: Path, others: Collection[Path]) -> bool:
    """Return whether one of the other paths leads to the same column, into it, or to a column around it."""
    return any(path[: len(other)] == other[: len(path)] for other in others)


class _Merging:
    """Walks through the columns, and collects what to change."""

    def __init__(
        self, match_case: bool, time_zone_known: bool, file_format: tuple[int, int], reasons: list[str]
    ) -> None:
        self._match_case = match_case
        self._time_zone_known = time_zone_known
        self._file_format = file_format
        self.reasons = reasons
        self.additions: list[pa.Field] = []
        self.added: list[tuple[Path, pa.DataType]] = []
        self.widenings: list[tuple[Path, pa.DataType, pa.DataType]] = []

    def column(self, table: pa.Field, rows: pa.Field | None) -> pa.Field:
        """Return the table's column as it is once the rows' column is merged."""
        path = (table.name,)
        if rows is None or pa.types.is_null(rows.type):
            self._check_may_be_null(table, path)
            return table
        decoded = rows.type.value_type if pa.types.is_dictionary(rows.type) else rows.type
        if rows.type == table.type or fits_column(
            rows.type, table.type, time_zone_known=self._time_zone_known
        ):
            return table
        merged, new = self._type(path, table.type, decoded)
        if new is not None:
            self.additions.append(pa.field(table.name, new))
        return table.with_type(merged)

    def new_field(self, rows: pa.Field, parent: Path) -> pa.Field | None:
        """Return the nullable field to add for one of the rows; None if it has no type yet."""
        path = (*parent, rows.name)
        arrow = _nullable(rows.type)
        if arrow is None:
            return None
        if _contains_null(arrow):
            self.reasons.append(f"{shown(path)} is {arrow}, which has values without a type; cast it")
        self.added.append((path, arrow))
        return pa.field(rows.name, arrow)

    def _type(
        self, path: Path, table: pa.DataType, rows: pa.DataType
    ) -> tuple[pa.DataType, pa.DataType | None]:
        """Return the merged type, and a type with only the new fields in it; None if there are none."""
        if len(path) > 1 and fits(rows, table):
            return table, None
        if pa.types.is_struct(table) and pa.types.is_struct(rows):
            return self._struct(path, table, rows)
        if pa.types.is_list(table) and (pa.types.is_list(rows) or pa.types.is_large_list(rows)):
            item = table.value_field
            merged, new = self._type((*path, item.name), item.type, rows.value_type)
            return pa.list_(item.with_type(merged)), None if new is None else pa.list_(item.with_type(new))
        if widens(table, rows):
            self._widen(path, table, rows)
            return rows, None
        self.reasons.append(f"{shown(path)} is {rows}, but {table} in the table")
        return table, None

    def _struct(
        self, path: Path, table: pa.DataType, rows: pa.DataType
    ) -> tuple[pa.DataType, pa.DataType | None]:
        matched, reasons = _matched(_fields(rows), _fields(table), path, self._match_case)
        self.reasons += reasons
        merged, new = [], []
        for child, i in matched.pairs:
            made, added_fields = self._child((*path, child.name), child, None if i is None else rows.field(i))
            merged.append(child.with_type(made))
            new += [] if added_fields is None else [pa.field(child.name, added_fields)]
        added = [made for i in matched.new if (made := self.new_field(rows.field(i), path)) is not None]
        if added and self._file_format < _ADDS_NESTED:
            names = ", ".join(shown((*path, field.name)) for field in added)
            self.reasons.append(
                f"{names} is not in the table, whose file format is too old to add a field to a struct"
            )
        new += added
        return pa.struct([*merged, *added]), pa.struct(new) if new else None

    def _child(
        self, path: Path, table: pa.Field, rows: pa.Field | None
    ) -> tuple[pa.DataType, pa.DataType | None]:
        if rows is None or pa.types.is_null(rows.type):
            self._check_may_be_null(table, path)
            return table.type, None
        return self._type(path, table.type, rows.type)

    def _widen(self, path: Path, table: pa.DataType, rows: pa.DataType) -> None:
        if len(path) > 1 and self._file_format < _WIDENS_NESTED:
            self.reasons.append(
                f"{shown(path)} is {rows}, but {table} in the table, whose file format is too old to change "
                "a field of a struct"
            )
        if any("`" in name for name in path):
            self.reasons.append(f"{shown(path)} is {rows}, but {table} in the table; Lance can't change it")
        self.widenings.append((path, table, rows))

    def _check_may_be_null(self, table: pa.Field, path: Path) -> None:
        if not table.nullable:
            self.reasons.append(
                f"{shown(path)} is missing or null in the rows, and the table does not allow nulls there"
            )


@dataclass(frozen=True, slots=True)
class _Matched:
    pairs: Sequence[tuple[pa.Field, int | None]]
    """The table's fields, with the positions of the rows' fields."""
    new: Sequence[int]
    """Positions of the rows' fields that the table lacks."""


def _matched(
    rows: Iterable[pa.Field], table: Iterable[pa.Field], parent: Path, match_case: bool
) -> tuple[_Matched, list[str]]:
    """Match the rows' fields with the table's by name; also return why some can't be matched."""
    key: Callable[[str], str] = str if match_case else str.lower
    own, existing = [field.name for field in rows], list(table)
    positions = {key(name): i for i, name in reversed(list(enumerate(own)))}
    pairs = [(field, positions.get(key(field.name))) for field in existing]
    found = {i for _, i in pairs}
    new = [i for i in positions.values() if i not in found]
    matches = Counter(i for _, i in pairs if i is not None)
    names = [field.name for field in existing] + [own[i] for i in new]
    spellings = Counter(name.lower() for name in names)
    problems = {
        "is in the rows several times": [i for i in range(len(own)) if positions[key(own[i])] != i],
        "matches columns of the table that differ only in case": [i for i in matches if matches[i] > 1],
        "is not in the table, and another column differs from it only in case": [
            i for i in new if spellings[own[i].lower()] > 1
        ],
    }
    reasons = [f"{shown((*parent, own[i]))} {what}" for what, found in problems.items() for i in found]
    return _Matched(pairs, sorted(new)), reasons


def _fields(struct: pa.DataType) -> list[pa.Field]:
    return [struct.field(index) for index in range(struct.num_fields)]


def _nullable(arrow: pa.DataType) -> pa.DataType | None:
    """Return a type with nullable nested fields, without fields of type null; None if nothing is left."""
    if pa.types.is_null(arrow):
        return None
    if pa.types.is_struct(arrow):
        children = [(field.name, _nullable(field.type)) for field in _fields(arrow)]
        kept = [pa.field(name, kind) for name, kind in children if kind is not None]
        return pa.struct(kept) if kept else None
    if pa.types.is_list(arrow):
        return pa.list_(_nullable(arrow.value_type) or pa.null())
    return arrow


def _contains_null(arrow: pa.DataType) -> bool:
    children = (arrow.field(index).type for index in range(arrow.num_fields))
    return pa.types.is_null(arrow) or any(_contains_null(child) for child in children)


def _is_bytes(arrow: pa.DataType) -> bool:
    return arrow in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
