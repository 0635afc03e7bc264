"""A condition as a tree: typed, validated, and with the same meaning for every engine that evaluates it.

Values of a column are ordered as Spark and Lance order them: a NaN equals each other NaN and is greater than
all else, and -0.0 equals 0.0. A comparison with null is null. Negations are moved into the tests, which this
order allows. Nodes are plain data: they are pickled for executors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

Value = int | float | str | bytes | bool
"""A literal as its column stores it: a decimal, a date or a time is its number of units."""
INVERSE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A column, or a field of a struct."""

    path: tuple[str, ...]
    """Names of the column and of its nested fields, as they are stored."""
    type: pa.DataType

    @property
    def root(self) -> str:
        """The name of the column that contains it."""
        return self.path[0]

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of a column."""

    function: str
    column: ColumnPath
    type: pa.DataType

    @property
    def root(self) -> str:
        """See `ColumnPath.root`."""
        return self.column.root

    def __str__(self) -> str:
        return f"{self.function}({self.column})"


Operand = ColumnPath | Call


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison with a value of the column's type."""

    sign: str
    left: Operand
    value: Value


@dataclass(frozen=True, slots=True)
class CompareColumns:
    """A comparison of two columns of one kind."""

    sign: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class IsIn:
    """Whether a column has one of several values; null if it is null."""

    left: Operand
    values: tuple[Value, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class TextTest:
    """``LIKE``, ``starts_with``, ``ends_with`` or ``contains``."""

    function: str
    left: Operand
    text: str
    negated: bool


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a column is null."""

    left: Operand
    negated: bool


@dataclass(frozen=True, slots=True)
class Unless:
    """The same answer for each value, such as of ``n > 1e30`` for an integer; null if the column is null."""

    left: Operand
    answer: bool


@dataclass(frozen=True, slots=True)
class Constant:
    """``TRUE`` or ``FALSE``."""

    answer: bool


@dataclass(frozen=True, slots=True)
class Joined:
    """Several conditions, joined by ``AND`` or ``OR``."""

    word: str
    parts: tuple[Node, ...]


Leaf = Compare | CompareColumns | IsIn | TextTest | IsNull | Unless | Constant
Node = Leaf | Joined


def joined(word: str, parts: Sequence[Node]) -> Node:
    """Join conditions; conditions joined by the same word become one node."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Joined) and part.word == word else [part])
    return flat[0] if len(flat) == 1 else Joined(word, tuple(flat))


def roots(node: Node) -> Iterator[str]:
    """Yield the columns that a condition names, perhaps repeatedly."""
    if isinstance(node, Joined):
        for part in node.parts:
            yield from roots(part)
    elif isinstance(node, CompareColumns):
        yield from (node.left.root, node.right.root)
    elif not isinstance(node, Constant):
        yield node.left.root


def leaves(node: Node) -> int:
    """Return the number of tests."""
    return sum(map(leaves, node.parts)) if isinstance(node, Joined) else 1


def is_special(value: Value) -> bool:
    """Return whether a value is a number of which there are several: NaN, and zero with its two signs."""
    return isinstance(value, float) and (math.isnan(value) or value == 0)
