"""SQL conditions as Arrow expressions and in Lance's dialect: parsed, never evaluated as code.

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

from airflow_provider_lancens import spec_errors

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
    lance_sql: str
    """The same in Lance's dialect, which compares only literals of a column's type with it."""


def parse_predicate(condition: str, schema: pa.Schema) -> SqlPredicate:
    """Parse a condition on rows of this schema.

    Raises:
        InvalidInputError: (13) it is invalid, names a column that doesn't exist, or compares values that
            cannot be compared; the message says where.
    """
    try:
        parser = _Parser(condition, schema)
        parsed = parser.parse()
        schema.empty_table().filter(parsed.expression)
    except (pa.ArrowException, ValueError) as error:
        raise spec_errors.InvalidInputError(f"filter {condition!r}: {error}") from error
    return SqlPredicate(parsed.expression, frozenset(parser.columns), parsed.sql)


class _Token(NamedTuple):
    kind: str
    text: str


class _Operand(NamedTuple):
    column: pa.Field | None
    value: Any = None


class _Condition(NamedTuple):
    expression: pc.Expression
    sql: str

    def __invert__(self) -> _Condition:
        return _Condition(~self.expression, f"NOT ({self.sql})")

    def __and__(self, other: _Condition) -> _Condition:
        return _Condition(self.expression & other.expression, f"({self.sql}) AND ({other.sql})")

    def __or__(self, other: _Condition) -> _Condition:
        return _Condition(self.expression | other.expression, f"({self.sql}) OR ({other.sql})")


class _Parser:
    def __init__(self, condition: str, schema: pa.Schema) -> None:
        self._schema = schema
        self._tokens = _tokens(condition)
        self._next = 0
        self.columns: set[str] = set()

    def parse(self) -> _Condition:
        expression = self._disjunction()
        if self._next < len(self._tokens):
            raise ValueError(f"unexpected {self._tokens[self._next].text!r}")
        return expression

    def _disjunction(self) -> _Condition:
        sides = [self._conjunction()]
        while self._accept("OR"):
            sides.append(self._conjunction())
        return functools.reduce(operator.or_, sides)

    def _conjunction(self) -> _Condition:
        sides = [self._negation()]
        while self._accept("AND"):
            sides.append(self._negation())
        return functools.reduce(operator.and_, sides)

    def _negation(self) -> _Condition:
        if self._accept("NOT"):
            return ~self._negation()
        if self._accept("("):
            expression = self._disjunction()
            self._expect(")")
            return expression
        return self._predicate(self._operand())

    def _predicate(self, left: _Operand) -> _Condition:
        sign = self._peek()
        if sign.kind == "sign" and sign.text in _COMPARISONS:
            self._next += 1
            return _compare(sign.text, left, self._operand())
        if left.column is None:
            raise ValueError("expected a comparison after a value")
        if self._accept("IS"):
            negated = self._accept("NOT")
            self._expect("NULL")
            name = left.column.name
            null = _Condition(pc.field(name).is_null(), f"{_quoted(name)} IS NULL")
            return ~null if negated else null
        negated = self._accept("NOT")
        if not negated and self._peek().kind != "keyword" and pa.types.is_boolean(left.column.type):
            return _column(left.column)
        expression = self._membership(left)
        return ~expression if negated else expression

    def _membership(self, left: _Operand) -> _Condition:
        if self._accept("IN"):
            return self._in_list(left)
        if self._accept("BETWEEN"):
            low = _compare(">=", left, self._operand())
            self._expect("AND")
            return low & _compare("<=", left, self._operand())
        if self._accept("LIKE") and left.column is not None:
            pattern, name = str(self._operand().value), left.column.name
            matches = pc.match_like(pc.field(name), pattern)
            return _Condition(matches, f"{_quoted(name)} LIKE {_text(pattern)}")
        if left.column is not None and pa.types.is_boolean(left.column.type):
            return _column(left.column)
        raise ValueError(f"expected a comparison after {left.column.name if left.column else 'a value'}")

    def _in_list(self, left: _Operand) -> _Condition:
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


def _compare(sign: str, left: _Operand, right: _Operand) -> _Condition:
    if left.column is None and right.column is None:
        raise ValueError("a comparison must contain a column")
    one, other = _term(left, right.column), _term(right, left.column)
    compared: pc.Expression = _COMPARISONS[sign](one.expression, other.expression)
    return _Condition(compared, f"{one.sql} {'=' if sign == '==' else sign} {other.sql}")


def _column(field: pa.Field) -> _Condition:
    return _Condition(pc.field(field.name), _quoted(field.name))


def _term(operand: _Operand, beside: pa.Field | None) -> _Condition:
    if operand.column is not None:
        return _column(operand.column)
    value = operand.value if beside is None else _value(operand.value, beside.type)
    return _Condition(pc.scalar(value), _literal(value))


def _value(value: Any, beside: pa.DataType) -> Any:
    """Return a value in the type in which Arrow compares it with a column as SQL would."""
    if isinstance(value, str) and pa.types.is_temporal(beside):
        return pa.scalar(value).cast(beside)
    if isinstance(value, Decimal) and not pa.types.is_decimal(beside):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _literal(value: Any) -> str:
    """Return a value as a literal in Lance's SQL, of its own type."""
    if isinstance(value, pa.Scalar):
        return _temporal(value)
    if isinstance(value, Decimal):
        whole, _, fraction = f"{abs(value):f}".partition(".")
        return f"cast('{value:f}' as decimal({len(whole + fraction)}, {len(fraction)}))"
    if isinstance(value, float):
        return f"cast('{value!r}' as double)"
    return _text(value) if isinstance(value, str) else str(value)


def _temporal(value: pa.Scalar) -> str:
    if pa.types.is_date(value.type):
        return f"date '{value.as_py().isoformat()}'"
    if pa.types.is_timestamp(value.type):
        return f"timestamp '{value.cast(pa.timestamp('us', value.type.tz)).as_py().isoformat(' ')}'"
    return _text(str(value.as_py()))  # Lance has no literal of this type, and says so


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
