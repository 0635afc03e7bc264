"""Plan how the columns of rows are merged into those of a table. Pure functions of two schemas.

A column or a field of a struct is matched by its name. What the table lacks is added as a nullable column,
what the rows lack is null in them, and a type of the table is widened if the rows have a wider one. Lance 14
changes structs only in its newer file formats, and corrupts a table whose structs it changes inside large
lists: those changes are refused here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from airflow_provider_lancens.spark.write.schema_check import fits, fits_column

Path = tuple[str, ...]
"""Names from a column to a nested field; the items of a list are a field too."""

_ADDS_NESTED, _WIDENS_NESTED = (2, 2), (2, 1)
"""File formats from which on Lance adds fields to a struct, and changes the type of one."""


@dataclass(frozen=True, slots=True)
class ColumnMatch:
    """Where the columns of a table are in the rows. Picklable."""

    sources: Mapping[str, str]
    """The rows' column by the table's; one that isn't here is null in the rows."""
    match_case: bool
    """Whether names that differ only in case are different ones."""

    @property
    def targets(self) -> dict[str, str]:
        """The table's column by the rows'."""
        return {source: name for name, source in self.sources.items()}


@dataclass(slots=True)
class MergePlan:
    """How to merge the columns of rows into a table's."""

    match: ColumnMatch
    schema: pa.Schema
    """The columns of the table once they are merged."""
    additions: list[pa.Field] = field(default_factory=list)
    """Columns to add; one that exists is a struct, or has one, and lists only its new fields."""
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
    """Plan how to merge the columns of rows into those of a table.

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
    """Return whether one of the other paths is that of a column, of something in it, or around it."""
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
        """Return the table's column as it is once that of the rows is merged."""
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
            made, news = self._child((*path, child.name), child, None if i is None else rows.field(i))
            merged.append(child.with_type(made))
            new += [] if news is None else [pa.field(child.name, news)]
        added = [made for i in matched.new if (made := self.new_field(rows.field(i), path)) is not None]
        if added and self._file_format < _ADDS_NESTED:
            names = ", ".join(shown((*path, one.name)) for one in added)
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
    """The table's fields, with the positions of the rows' ones."""
    new: Sequence[int]
    """Positions of those that the table lacks."""


def _matched(
    rows: Iterable[pa.Field], table: Iterable[pa.Field], parent: Path, match_case: bool
) -> tuple[_Matched, list[str]]:
    """Match the rows' fields with the table's by name; also return why some can't be matched."""
    key: Callable[[str], str] = str if match_case else str.lower
    own, existing = [one.name for one in rows], list(table)
    positions = {key(name): i for i, name in reversed(list(enumerate(own)))}
    pairs = [(one, positions.get(key(one.name))) for one in existing]
    found = {i for _, i in pairs}
    new = [i for i in positions.values() if i not in found]
    matches = Counter(i for _, i in pairs if i is not None)
    names = [one.name for one in existing] + [own[i] for i in new]
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
    """Return a type with nullable nested fields, without those that have no type; None if it has none."""
    if pa.types.is_null(arrow):
        return None
    if pa.types.is_struct(arrow):
        children = [(one.name, _nullable(one.type)) for one in _fields(arrow)]
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
