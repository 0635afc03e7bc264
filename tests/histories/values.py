"""Random rows, and conditions on them that the model evaluates itself."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.histories.model import Column, Row, State

WORDS = ("apple", "apricot", "banana", "red apple", "cherry pie")
LABELS = ("x", "y", "z")
_NULLS = 0.15


def value(chance: random.Random, kind: str) -> Any:
    """Return a value of a type, sometimes null."""
    if chance.random() < _NULLS:
        return None
    match kind:
        case "int" | "bigint":
            return chance.randrange(8)
        case "double":
            return chance.randrange(8) / 2
        case "string":
            return chance.choice(WORDS)
        case "array":
            return chance.sample(LABELS, chance.randrange(3))
        case "vector":
            return [float(chance.randrange(4)), float(chance.randrange(4))]
    raise AssertionError(kind)


def row(chance: random.Random, columns: Sequence[Column], key: int | None) -> Row:
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
    texts = [f"'{one}'" if column.type == "string" else repr(one) for one in (some, other, low, high)]
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
