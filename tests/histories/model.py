"""What a table must contain: plain rows and columns of each version, and the tags, without any of Lance."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

Row = dict[int, Any]
"""A row by the numbers of its columns; one that it lacks is null."""
Rows = Counter[tuple[Any, ...]]
"""How often each row is there."""

TYPES: dict[str, pa.DataType] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "array": pa.list_(pa.string()),
    "vector": pa.list_(pa.float32(), 2),
}
NUMBERS = ("int", "bigint", "double")


@dataclass(frozen=True)
class Column:
    """A column, which keeps its number when it is renamed or widened, and comes back with it by a restore."""

    number: int
    name: str
    type: str


@dataclass(frozen=True)
class State:
    """The columns and rows of a version."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def schema(self) -> list[tuple[str, str]]:
        """The names and types of the columns."""
        return [(one.name, one.type) for one in self.columns]

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        return next(one for one in self.columns if one.name == name)

    def of_types(self, *types: str) -> list[Column]:
        """Return the columns of some types."""
        return [one for one in self.columns if one.type in types]

    def counted(self, columns: Sequence[Column] | None = None) -> Rows:
        """Count the rows, with the columns of another version if they are given."""
        wanted = self.columns if columns is None else columns
        return Counter(tuple(plain(row.get(one.number)) for one in wanted) for row in self.rows)

    def with_rows(self, rows: Iterable[Row]) -> "State":
        """Return the same columns with other rows, which may have columns that are gone."""
        numbers = [one.number for one in self.columns]
        return replace(self, rows=tuple({number: row.get(number) for number in numbers} for row in rows))

    def with_columns(self, columns: Iterable[Column]) -> "State":
        """Return the same rows with other columns."""
        return State(tuple(columns), self.rows).with_rows(self.rows)


@dataclass
class Model:
    """What a table must contain at each version."""

    states: dict[int, State] = field(default_factory=dict)
    """By version; those in between of a step of several commits are unknown."""
    newest: int = 0
    tags: dict[str, int] = field(default_factory=dict)
    _numbers: int = 0

    @property
    def state(self) -> State:
        """The newest version."""
        return self.states[self.newest]

    def new_column(self, name: str, kind: str) -> Column:
        """Return a column that was never there."""
        self._numbers += 1
        return Column(self._numbers, name, kind)


def plain(value: Any) -> Any:
    """Return a value that can be compared and counted."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)  # in a zone, a time that is there twice equals that of no other zone
    return tuple(map(plain, value)) if isinstance(value, list) else value


def type_name(arrow: pa.DataType) -> str:
    """Return the name of a type of a column."""
    return next((name for name, one in TYPES.items() if one == arrow), str(arrow))


def counted(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> Rows:
    """Count rows by their values."""
    return Counter(tuple(plain(row[name]) for name in names) for row in rows)


def as_arrow(rows: Sequence[Row], columns: Sequence[Column]) -> pa.Table:
    """Return rows with their columns."""
    arrays = [pa.array([row.get(one.number) for row in rows], TYPES[one.type]) for one in columns]
    return pa.Table.from_arrays(arrays, names=[one.name for one in columns])
