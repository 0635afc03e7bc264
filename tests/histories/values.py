"""Random rows, and conditions on them that the model evaluates itself."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.histories.model import Column, Row, State

WORDS = ("apple", "apricot", "banana", "red apple", "cherry pie")
LABELS = ("x", "y", "z")
ZONES = ("UTC", "America/New_York", "Asia/Tokyo")
"""Of the sessions."""
MOMENTS = (
    # New York's clocks skip the hour after 02:00, and then have the hour after 01:00 twice.
    *(datetime(2026, 3, 8, 6, 30, tzinfo=UTC) + timedelta(minutes=30 * number) for number in range(3)),
    *(datetime(2026, 11, 1, 5, 30, tzinfo=UTC) + timedelta(minutes=30 * number) for number in range(3)),
    # About midnight in Tokyo, and a microsecond before it in UTC.
    datetime(2025, 12, 31, 15, tzinfo=UTC),
    datetime(2025, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)
_VALUES: dict[str, Callable[[random.Random], Any]] = {
    "int": lambda chance: chance.randrange(8),
    "bigint": lambda chance: chance.randrange(8),
    "double": lambda chance: chance.randrange(8) / 2,
    "string": lambda chance: chance.choice(WORDS),
    "date": lambda chance: chance.choice(MOMENTS).date(),
    "timestamp": lambda chance: chance.choice(MOMENTS),
    "timestamp_ntz": lambda chance: chance.choice(MOMENTS).replace(tzinfo=None),
    "array": lambda chance: chance.sample(LABELS, chance.randrange(3)),
    "vector": lambda chance: [float(chance.randrange(4)), float(chance.randrange(4))],
}
_FIRST_KEY = datetime(2026, 11, 1, 4, tzinfo=UTC)
_NULLS = 0.15


def value(chance: random.Random, kind: str) -> Any:
    """Return a value of a type, sometimes null."""
    return None if chance.random() < _NULLS else _VALUES[kind](chance)


def key(kind: str, number: int) -> Any:
    """Return a key of a type, each with another number."""
    match kind:
        case "date":
            return _FIRST_KEY.date() + timedelta(number)
        case "timestamp":
            return _FIRST_KEY + timedelta(minutes=30 * number)
        case "timestamp_ntz":
            return _FIRST_KEY.replace(tzinfo=None) + timedelta(minutes=30 * number)
    return number


def row(chance: random.Random, columns: Sequence[Column], key: Any) -> Row:
    """Return a row with a key, which the first column has."""
    made = {one.number: value(chance, one.type) for one in columns}
    return {**made, columns[0].number: key}


@dataclass(frozen=True)
class Condition:
    """A condition on a column, in SQL and in Python."""

    text: str
    column: Column
    test: Callable[[Any], bool]

    def matches(self, one: Row) -> bool:
        """Return whether a row matches."""
        return self.test(one.get(self.column.number))


def condition(chance: random.Random, state: State) -> Condition:
    """Return a condition on a column of a version."""
    column = chance.choice([one for one in state.columns if one.type != "vector"])
    return chance.choice(conditions(chance, column))


def conditions(chance: random.Random, column: Column) -> list[Condition]:
    """Return a condition of each kind that a column can have."""
    name, some = column.name, None
    if column.type == "array":
        label = chance.choice(LABELS)
        return [
            Condition(f"{name} IS NULL", column, lambda one: one is None),
            Condition(f"array_has({name}, '{label}')", column, lambda one: one is not None and label in one),
        ]
    while some is None:
        some = value(chance, column.type)
    other = value(chance, column.type) or some
    low, high = sorted((some, other))
    texts = [_literal(chance, column.type, one) for one in (some, other, low, high)]
    found = [
        Condition(f"{name} = {texts[0]}", column, lambda one: one == some),
        Condition(f"{name} IS NULL", column, lambda one: one is None),
        Condition(f"{name} IN ({texts[0]}, {texts[1]})", column, lambda one: one in (some, other)),
        Condition(f"{name} < {texts[0]}", column, lambda one: one is not None and one < some),
        Condition(
            f"{name} BETWEEN {texts[2]} AND {texts[3]}",
            column,
            lambda one: one is not None and low <= one <= high,
        ),
    ]
    if column.type == "string":
        part = some[1:4]
        found.append(
            Condition(f"{name} LIKE '%{part}%'", column, lambda one: one is not None and part in one)
        )
    return found


def _literal(chance: random.Random, kind: str, one: Any) -> str:
    match kind:
        case "string":
            return f"'{one}'"
        case "date":
            return f"DATE '{one}'"
        case "timestamp":
            # Without an offset, it is a time in UTC, whatever the session's zone is.
            zone = chance.choice((None, *ZONES))
            return (
                f"TIMESTAMP '{one.replace(tzinfo=None) if zone is None else one.astimezone(ZoneInfo(zone))}'"
            )
        case "timestamp_ntz":
            return f"TIMESTAMP '{one}'"
    return repr(one)
