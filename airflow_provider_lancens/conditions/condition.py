"""Parsed conditions, and how they are parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.conditions import render
from airflow_provider_lancens.conditions.literals import (
    BOOLEAN,
    DATE,
    TEXT,
    TIMESTAMP,
    CannotCompareError,
    Literal,
    compared,
    kind_of,
)
from airflow_provider_lancens.conditions.tree import (
    INVERSE,
    MIRRORED,
    Call,
    ColumnPath,
    CompareColumns,
    Constant,
    IsIn,
    IsNull,
    Node,
    Operand,
    TextTest,
    Unless,
    joined,
    roots,
)
from airflow_provider_lancens.conditions.tree import Compare as _Compare

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from airflow_provider_lancens.conditions.syntax import Source, SqlNode

_SIGNS = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_TEXT_TESTS = ("starts_with", "ends_with", "contains")
_NUMBERS = {"length": (TEXT,), "octet_length": (TEXT,)} | dict.fromkeys(
    ("year", "month", "day"), (DATE, TIMESTAMP)
)
FUNCTIONS = (*_TEXT_TESTS, *_NUMBERS)
"""The functions that Lance, Arrow and Spark agree on."""
_ARGUMENTS = {"this", "expression", "expressions", "low", "high", "negate", "query", "field", "unnest", "to"}
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LONGEST_NUMBER = 400
_DEEPEST = 16
"""How many levels of alternating AND and OR Lance parses for sure."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on rows with certain columns. Picklable; executors need no parser."""

    text: str
    """The condition as it was written."""
    tree: Node

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it names; of nested fields, the column that contains them."""
        return frozenset(roots(self.tree))

    @property
    def matches_all(self) -> bool:
        """Whether it is just ``TRUE``."""
        return self.tree == Constant(answer=True)

    @property
    def lance_sql(self) -> str:
        """The condition in Lance's SQL."""
        return render.lance_sql(self.tree)

    @property
    def spark_sql(self) -> str:
        """The condition in Spark's SQL."""
        return render.spark_sql(self.tree)

    def mask(self, rows: pa.RecordBatch | pa.Table) -> pa.BooleanArray | pa.ChunkedArray:
        """Return for each row whether it matches: true, false or null."""
        return render.mask(self.tree, rows)

    def pruning(self) -> pc.Expression | None:
        """Return an expression by which Arrow may skip parts of files; None if there are too many tests."""
        return render.expression(self.tree)


def parse_condition(text: str, schema: pa.Schema, argument: str = "filter") -> Condition:
    """Parse a condition on rows with these columns.

    Args:
        text: the condition, see docs/conditions.md.
        schema: the columns.
        argument: what the caller calls the condition, for messages.

    Raises:
        InvalidInputError: (13) it isn't exactly one condition, names an unknown column or function, or
            compares what can't be compared; the message marks the place.
    """
    from airflow_provider_lancens.conditions.syntax import CONDITION, LanceConditions, Source

    source = Source(text, argument)
    parsed = source.parse(LanceConditions, CONDITION)
    builder = _Builder(source, Names(source, schema))
    tree = builder.build(parsed, negated=False)
    if _depth(tree) > _DEEPEST:
        raise source.error("the condition is nested too deeply")
    return Condition(text, tree)


def is_null(column: str, schema: pa.Schema) -> Condition:
    """Return the condition that a column is null."""
    return Condition(
        f"`{column}` IS NULL", IsNull(ColumnPath((column,), schema.field(column).type), negated=False)
    )


def _depth(node: Node) -> int:
    parts: Iterable[Node] = getattr(node, "parts", ())
    return 1 + max(map(_depth, parts), default=0)


class Names:
    """The columns that names refer to."""

    def __init__(self, source: Source, schema: pa.Schema) -> None:
        """Take the text, for errors, and the columns."""
        self._source = source
        self._schema = schema

    def column(self, node: SqlNode) -> ColumnPath:
        """Return the column that a name refers to: as it is written, else in another case, if only one is.

        Raises:
            InvalidInputError: (13) there is none, or several.
        """
        parts = self._parts(node)
        fields: Any = self._schema
        names: list[str] = []
        arrow: Any = None
        for index, part in enumerate(parts):
            if index:
                fields = arrow
                if not self._is_struct(arrow):
                    raise self._source.at(node, f"{'.'.join(names)} has no fields: it is {arrow}")
            field = self._field(node, list(fields), part, ".".join(names))
            names.append(field.name)
            arrow = field.type
        return ColumnPath(tuple(names), arrow)

    def _parts(self, node: SqlNode) -> list[str]:
        from sqlglot import exp

        parts: list[str] = []
        while isinstance(node, exp.Dot):
            parts.insert(0, self._name(node, node.expression))
            node = node.this
        if not isinstance(node, exp.Column):
            raise self._source.at(node, "expected a column")
        return [*(self._name(node, part) for part in node.parts), *parts]

    def _name(self, node: SqlNode, part: SqlNode) -> str:
        from sqlglot import exp

        if not isinstance(part, exp.Identifier):
            raise self._source.at(node, "expected the name of a column")
        return str(part.this)

    @staticmethod
    def _is_struct(arrow: pa.DataType) -> bool:
        from pyarrow import types

        return bool(types.is_struct(arrow))

    def _field(self, node: SqlNode, fields: list[pa.Field], name: str, parent: str) -> pa.Field:
        if same_name := [field for field in fields if field.name == name]:
            return same_name[0]
        same_name = [field for field in fields if field.name.casefold() == name.casefold()]
        if len(same_name) == 1:
            return same_name[0]
        names = ", ".join(field.name for field in same_name or fields)
        if same_name:
            raise self._source.at(node, f"column {name!r} could be each of {names}; write it as it is stored")
        where = f"{parent} has no field" if parent else "no column"
        hint = ""
        if "'" not in name and re.search("[\u2018\u2019\u201c\u201d]", name):
            hint = "; text is written in straight single quotes"
        elif self._is_quoted(node):
            hint = "; text is written in single quotes"
        raise self._source.at(node, f"{where} {name!r}{hint}; there are {names}")

    @staticmethod
    def _is_quoted(node: SqlNode) -> bool:
        from sqlglot import exp

        return any(part.args.get("quoted") for part in node.find_all(exp.Identifier))


class _Builder:
    """Builds the tree; what has no place in the grammar is refused."""

    def __init__(self, source: Source, names: Names) -> None:
        self._source = source
        self._names = names

    def build(self, node: SqlNode, *, negated: bool) -> Node:
        """Return a condition, or its negation: that has no node, since each test has an opposite."""
        from sqlglot import exp

        while isinstance(node, exp.Paren | exp.Not):
            self._check_arguments(node)
            negated ^= isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.And | exp.Or):
            word = "AND" if isinstance(node, exp.And) is not negated else "OR"
            return joined(word, [self.build(part, negated=negated) for part in _parts(node)])
        return self._test(node, negated)

    def _test(self, node: SqlNode, negated: bool) -> Node:
        from sqlglot import exp

        self._check_arguments(node)
        negated ^= bool(node.args.get("negate"))
        name = type(node).__name__
        if name in _SIGNS:
            sign = INVERSE[_SIGNS[name]] if negated else _SIGNS[name]
            return self._comparison(node, sign, node.this, node.expression)
        if isinstance(node, exp.Boolean):
            return Constant(bool(node.this) is not negated)
        build: Callable[[SqlNode, bool], Node] | None = {
            "Is": self._is,
            "In": self._in,
            "Between": self._between,
            "Like": self._like,
            "Column": self._flag,
            "Dot": self._flag,
            "Anonymous": self._text_test,
        }.get(name)
        if build is None:
            raise self._refusal(node)
        return build(node, negated)

    def _comparison(self, node: SqlNode, sign: str, left: SqlNode, right: SqlNode) -> Node:
        left, right = _bare(left), _bare(right)
        ours, theirs = self._operand(left), self._operand(right)
        if ours is None and theirs is None:
            raise self._source.at(node, "expected a column on one side of a comparison")
        if ours is not None and theirs is not None:
            return self._columns(node, sign, ours, theirs)
        if ours is not None:
            return self._compare(sign, ours, right)
        return self._compare(MIRRORED[sign], self._comparable(right), left)

    def _compare(self, sign: str, operand: Operand, node: SqlNode) -> Node:
        literal = self._literal(node)
        try:
            return compared(sign, operand, literal)
        except CannotCompareError as error:
            raise self._source.at(
                node, f"{literal.shown} can't be compared with {operand} ({operand.type}); expected {error}"
            ) from None

    def _columns(self, node: SqlNode, sign: str, left: Operand, right: Operand) -> Node:
        kinds = {kind_of(left.type), kind_of(right.type)}
        if kinds == {BOOLEAN} and sign not in ("=", "!="):
            raise self._source.at(node, "booleans have no order; expected = or !=")
        if None in kinds or render.common_type(left.type, right.type) is None:
            raise self._source.at(
                node,
                f"{left} ({left.type}) can't be compared with {right} ({right.type}); expected the same type",
            )
        return CompareColumns(sign, left, right)

    def _is(self, node: SqlNode, negated: bool) -> Node:
        from sqlglot import exp

        right = node.expression
        if isinstance(right, exp.Not):  # sqlglot may parse IS NOT as IS (NOT …)
            negated, right = not negated, right.this
        if isinstance(right, exp.Null):
            return IsNull(self._any_operand(node.this), negated)
        if not isinstance(right, exp.Boolean):
            raise self._source.at(node, "expected NULL, NOT NULL, TRUE or FALSE after IS")
        operand = self._boolean(node.this)
        if negated:
            return joined("OR", [_Compare("!=", operand, bool(right.this)), IsNull(operand, negated=False)])
        return joined("AND", [_Compare("=", operand, bool(right.this)), IsNull(operand, negated=True)])

    def _in(self, node: SqlNode, negated: bool) -> Node:
        operand = self._comparable(node.this)
        choices = node.expressions
        if not choices or node.args.get("query") or node.args.get("field"):
            raise self._source.at(node, "expected values such as (1, 2) after IN")
        tests = [self._compare("=", operand, _bare(choice)) for choice in choices]
        values = tuple(dict.fromkeys(test.value for test in tests if isinstance(test, _Compare)))
        return IsIn(operand, values, negated) if values else Unless(operand, negated)

    def _between(self, node: SqlNode, negated: bool) -> Node:
        if node.args.get("symmetric") is not None:
            raise self._refusal(node)
        low = self._comparison(node, "<" if negated else ">=", node.this, node.args["low"])
        high = self._comparison(node, ">" if negated else "<=", node.this, node.args["high"])
        return joined("OR" if negated else "AND", [low, high])

    def _like(self, node: SqlNode, negated: bool) -> Node:
        operand = self._of_kind(node.this, (TEXT,), "LIKE")
        pattern = self._text(node.expression)
        if re.search(r"(?<!\\)(?:\\\\)*\\(?![%_\\])", pattern):
            raise self._source.at(
                node.expression, r"expected % _ or \ after each \ of a pattern: it takes their meaning away"
            )
        return TextTest("like", operand, pattern, negated)

    def _flag(self, node: SqlNode, negated: bool) -> Node:
        return _Compare("=", self._boolean(node), not negated)

    def _boolean(self, node: SqlNode) -> Operand:
        operand = self._any_operand(node)
        if kind_of(operand.type) != BOOLEAN:
            raise self._source.at(node, f"expected a comparison: {operand} is {operand.type}, not boolean")
        return operand

    def _text_test(self, node: SqlNode, negated: bool) -> Node:
        name = str(node.this).lower()
        if name not in FUNCTIONS:
            raise self._unknown(node)
        if name not in _TEXT_TESTS:
            raise self._source.at(node, f"expected a comparison of {name}(…)")
        if len(node.expressions) != 2:
            raise self._source.at(node, f"expected {name}(column, 'text')")
        operand = self._of_kind(node.expressions[0], (TEXT,), name)
        return TextTest(name, operand, self._text(node.expressions[1]), negated)

    def _text(self, node: SqlNode) -> str:
        literal = self._literal(_bare(node))
        if literal.kind != "text" or not isinstance(literal.value, str):
            raise self._source.at(node, "expected text in single quotes")
        return literal.value

    def _operand(self, node: SqlNode) -> Operand | None:
        """Return a column or a function of it; None for what may be a literal."""
        from sqlglot import exp

        if isinstance(node, exp.Column | exp.Dot | exp.Anonymous):
            return self._comparable(node)
        return None

    def _comparable(self, node: SqlNode) -> Operand:
        operand = self._any_operand(node)
        if kind_of(operand.type) is None:
            raise self._source.at(
                node, f"{operand} ({operand.type}) can't be compared; expected IS NULL or IS NOT NULL"
            )
        return operand

    def _of_kind(self, node: SqlNode, kinds: Sequence[str], what: str) -> Operand:
        operand = self._any_operand(node)
        if kind_of(operand.type) not in kinds:
            raise self._source.at(node, f"{what}: expected {' or '.join(kinds)}; {operand} is {operand.type}")
        return operand

    def _any_operand(self, node: SqlNode) -> Operand:
        from sqlglot import exp

        node = _bare(node)
        if not isinstance(node, exp.Anonymous):
            if isinstance(node, exp.Column | exp.Dot):
                return self._names.column(node)
            raise self._refusal(node, "expected a column")
        name = str(node.this).lower()
        if name not in FUNCTIONS:
            raise self._unknown(node)
        if name not in _NUMBERS or len(node.expressions) != 1:
            raise self._source.at(node, f"expected {name}(column{', text' if name in _TEXT_TESTS else ''})")
        column = self._of_kind(node.expressions[0], _NUMBERS[name], name)
        if isinstance(column, Call):
            raise self._source.at(node, f"{name}: expected a column")
        import pyarrow as pa

        return Call(name, column, pa.int64())

    def _literal(self, node: SqlNode) -> Literal:
        from sqlglot import exp

        node, sign = _bare(node), 1
        while isinstance(node, exp.Neg):
            node, sign = _bare(node.this), -sign
        if isinstance(node, exp.Literal) and not node.is_string:
            text = str(node.this)
            if not _NUMBER.fullmatch(text) or len(text) > _LONGEST_NUMBER:
                raise self._source.at(node, f"{text[:20]!r} isn't a number that a column can hold")
            number = Decimal(text)  # no arithmetic: it would round to the precision of the thread's context
            return Literal("number", number if sign > 0 else number.copy_negate(), "-" * (sign < 0) + text)
        if sign < 0:
            raise self._refusal(node, "expected a number after -")
        return self._other_literal(node)

    def _other_literal(self, node: SqlNode) -> Literal:
        from sqlglot import exp

        match node:
            case exp.Literal():
                return Literal("text", str(node.this), f"the text '{str(node.this)[:40]}'")
            case exp.Boolean():
                return Literal("boolean", bool(node.this), str(bool(node.this)).upper())
            case exp.HexString():
                return Literal("bytes", self._bytes(node), "bytes")
            case exp.Cast() if typed := self._typed(node):
                return typed
            case exp.Null():
                raise self._source.at(
                    node.parent or node, "nothing equals NULL; write IS NULL or IS NOT NULL"
                )
        raise self._refusal(node, "expected a value")

    def _bytes(self, node: SqlNode) -> bytes:
        start = node.meta.get("start", 0)
        try:
            if self._source.text[start : start + 2].lower() == "x'":
                return bytes.fromhex(str(node.this))
        except ValueError:
            pass
        raise self._source.at(node, "expected bytes such as X'00FF', two digits each")

    def _typed(self, node: SqlNode) -> Literal | None:
        """Return DATE or TIMESTAMP with a text, which sqlglot represents as casts."""
        from sqlglot import exp

        kind = {"DATE": "date", "TIMESTAMP": "timestamp"}.get(node.to.this.name if node.to else "")
        text = node.this
        if kind is None or not isinstance(text, exp.Literal) or not text.is_string:
            return None
        return Literal(kind, str(text.this), f"{kind.upper()} '{text.this}'")

    def _check_arguments(self, node: SqlNode) -> None:
        """Refuse what sqlglot notes of a part of SQL that the grammar doesn't have."""
        for name, value in node.args.items():
            if (
                name not in _ARGUMENTS
                and value not in (None, False, [])
                and type(node).__name__ not in ("Column", "Dot")
            ):
                raise self._refusal(node)

    def _unknown(self, node: SqlNode) -> Exception:
        return self._source.at(
            node,
            f"no function {str(node.this)!r} in conditions; there are {', '.join(FUNCTIONS)}; "
            "for others, filter the DataFrame or the dataset() of the hook",
        )

    def _refusal(self, node: SqlNode, problem: str = "expected a condition") -> Exception:
        from sqlglot import exp

        if isinstance(node, exp.Anonymous):
            return self._unknown(node)
        return self._source.at(node, f"{problem}, got NULL" if isinstance(node, exp.Null) else problem)


def _bare(node: SqlNode) -> SqlNode:
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _parts(node: SqlNode) -> list[SqlNode]:
    """Return the sides of a chain of the same word, without a call for each."""
    kind, parts = type(node), []
    while isinstance(node, kind):
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]
