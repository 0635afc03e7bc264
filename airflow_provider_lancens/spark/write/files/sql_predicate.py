"""SQL conditions as Arrow expressions: parsed, never evaluated as code.

Comparisons, ``IS [NOT] NULL``, ``[NOT] IN (…)``, ``[NOT] BETWEEN … AND …``, ``[NOT] LIKE``, joined by
``AND``, ``OR``, ``NOT`` and parentheses. A comparison with null is neither true nor false, as in SQL.
"""

from __future__ import annotations

import functools
import operator
import re
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from lance_namespace.errors import InvalidInputError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|'(?P<text>(?:[^']|'')*)'"
    r"|`(?P<quoted>(?:[^`]|``)+)`|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|==|[=<>(),]))"
)
_COMPARISONS = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KEYWORDS = frozenset(["AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN", "LIKE", "TRUE", "FALSE"])


class SqlPredicate(NamedTuple):
    """A condition as an Arrow expression."""

    expression: pc.Expression
    columns: frozenset[str]
    """The columns that it refers to."""


def parse_predicate(condition: str, schema: pa.Schema) -> SqlPredicate:
    """Parse a condition on rows of this schema.

    Raises:
        InvalidInputError: (13) it is invalid, names a column that doesn't exist, or compares values that
            cannot be compared; the message says where.
    """
    try:
        parser = _Parser(condition, schema)
        expression = parser.parse()
        schema.empty_table().filter(expression)
    except (pa.ArrowException, ValueError) as error:
        raise InvalidInputError(f"filter {condition!r}: {error}") from error
    return SqlPredicate(expression, frozenset(parser.columns))


class _Token(NamedTuple):
    kind: str
    text: str


class _Operand(NamedTuple):
    column: pa.Field | None
    value: Any = None


class _Parser:
    def __init__(self, condition: str, schema: pa.Schema) -> None:
        self._schema = schema
        self._tokens = _tokens(condition)
        self._next = 0
        self.columns: set[str] = set()

    def parse(self) -> pc.Expression:
        expression = self._disjunction()
        if self._next < len(self._tokens):
            raise ValueError(f"unexpected {self._tokens[self._next].text!r}")
        return expression

    def _disjunction(self) -> pc.Expression:
        sides = [self._conjunction()]
        while self._accept("OR"):
            sides.append(self._conjunction())
        return functools.reduce(operator.or_, sides)

    def _conjunction(self) -> pc.Expression:
        sides = [self._negation()]
        while self._accept("AND"):
            sides.append(self._negation())
        return functools.reduce(operator.and_, sides)

    def _negation(self) -> pc.Expression:
        if self._accept("NOT"):
            return ~self._negation()
        if self._accept("("):
            expression = self._disjunction()
            self._expect(")")
            return expression
        return self._predicate(self._operand())

    def _predicate(self, left: _Operand) -> pc.Expression:
        sign = self._peek()
        if sign.kind == "sign" and sign.text in _COMPARISONS:
            self._next += 1
            return _compare(sign.text, left, self._operand())
        if left.column is None:
            raise ValueError("expected a comparison after a value")
        if self._accept("IS"):
            negated = self._accept("NOT")
            self._expect("NULL")
            null = pc.field(left.column.name).is_null()
            return ~null if negated else null
        negated = self._accept("NOT")
        if not negated and self._peek().kind != "keyword" and pa.types.is_boolean(left.column.type):
            return pc.field(left.column.name)
        expression = self._membership(left)
        return ~expression if negated else expression

    def _membership(self, left: _Operand) -> pc.Expression:
        if self._accept("IN"):
            return self._in_list(left)
        if self._accept("BETWEEN"):
            low = _compare(">=", left, self._operand())
            self._expect("AND")
            return low & _compare("<=", left, self._operand())
        if self._accept("LIKE") and left.column is not None:
            return pc.match_like(pc.field(left.column.name), str(self._operand().value))
        if left.column is not None and pa.types.is_boolean(left.column.type):
            return pc.field(left.column.name)
        raise ValueError(f"expected a comparison after {left.column.name if left.column else 'a value'}")

    def _in_list(self, left: _Operand) -> pc.Expression:
        self._expect("(")
        choices = [_compare("=", left, self._operand())]
        while self._accept(","):
            choices.append(_compare("=", left, self._operand()))
        self._expect(")")
        return functools.reduce(operator.or_, choices)

    def _operand(self) -> _Operand:
        token = self._peek()
        self._next += 1
        if token.kind in ("word", "quoted"):
            name = token.text.replace("``", "`")
            if name not in self._schema.names:
                raise ValueError(f"column {name} does not exist; columns: {self._schema.names}")
            self.columns.add(name)
            return _Operand(self._schema.field(name))
        if token.kind == "number":
            return _Operand(None, Decimal(token.text))
        if token.kind == "text":
            return _Operand(None, token.text.replace("''", "'"))
        if token.text in ("TRUE", "FALSE"):
            return _Operand(None, token.text == "TRUE")
        raise ValueError(f"expected a column or a value, got {_shown(token)}")

    def _peek(self) -> _Token:
        return self._tokens[self._next] if self._next < len(self._tokens) else _Token("end", "")

    def _accept(self, text: str) -> bool:
        token = self._peek()
        accepted = token.kind in ("keyword", "sign") and token.text == text
        self._next += accepted
        return accepted

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise ValueError(f"expected {text}, got {_shown(self._peek())}")


def _tokens(condition: str) -> list[_Token]:
    tokens, at, rest = [], 0, condition.rstrip()
    while at < len(rest):
        match = _TOKEN.match(rest, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"cannot be parsed from {rest[at:].lstrip()!r} on")
        at = match.end()
        kind, text = match.lastgroup, match[match.lastgroup]
        if kind == "word" and text.upper() in _KEYWORDS:
            kind, text = "keyword", text.upper()
        tokens.append(_Token(kind, text))
    return tokens


def _shown(token: _Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text)


def _compare(sign: str, left: _Operand, right: _Operand) -> pc.Expression:
    if left.column is None and right.column is None:
        raise ValueError("a comparison must contain a column")
    compared: pc.Expression = _COMPARISONS[sign](_term(left, right.column), _term(right, left.column))
    return compared


def _term(operand: _Operand, beside: pa.Field | None) -> pc.Expression:
    if operand.column is not None:
        return pc.field(operand.column.name)
    return pc.scalar(operand.value if beside is None else _value(operand.value, beside.type))


def _value(value: Any, beside: pa.DataType) -> Any:
    """Return a value in the type in which Arrow compares it with a column as SQL would."""
    if isinstance(value, str) and pa.types.is_temporal(beside):
        return pa.scalar(value).cast(beside)
    if isinstance(value, Decimal) and not pa.types.is_decimal(beside):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
