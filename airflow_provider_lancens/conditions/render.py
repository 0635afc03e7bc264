"""Renders a tree for Lance, Arrow and Spark, so that all three select the same rows.

Where they differ, the rendered condition is explicit: comparisons of NaN and zeros, the meaning of null for a
list of values, types of literals, and escapes in text. Chains of many tests are divided, since engines
recurse for each link.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_provider_lancens.conditions.literals import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    UNITS,
    ZONED,
    kind_of,
)
from airflow_provider_lancens.conditions.tree import (
    Call,
    ColumnPath,
    Compare,
    CompareColumns,
    Constant,
    IsIn,
    IsNull,
    Joined,
    Leaf,
    Node,
    Operand,
    TextTest,
    Unless,
    Value,
    is_special,
    leaves,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

_CHAIN = 100
_MOST_PRUNING = 100
"""Arrow's expressions of thousands of tests overflow its stack."""
_MOST_DIGITS = 38
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 a clock without zone
_PLAIN_TEXT = re.compile(r"[^\\'$\x00-\x1f]*")


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which two columns are compared without loss; None if there is none."""
    import pyarrow as pa

    kinds = {kind_of(left), kind_of(right)}
    if kinds <= {INTEGER, DECIMAL}:
        if kinds == {INTEGER} and not {left, right} & {pa.uint64()}:
            return pa.int64()
        return left if left == right else _common_decimal(_as_decimal(left), _as_decimal(right))
    if len(kinds) > 1:
        return None
    (kind,) = kinds
    if kind in (TIMESTAMP, ZONED) and left.unit == right.unit:
        return pa.timestamp(left.unit, None if kind == TIMESTAMP else "UTC")
    return {FLOAT: pa.float64(), TEXT: pa.large_string(), BYTES: pa.large_binary()}.get(
        kind or "", left if left == right else None
    )


def _as_decimal(arrow: pa.DataType) -> tuple[int, int]:
    """Return the digits before and after the point."""
    if kind_of(arrow) == DECIMAL:
        return arrow.precision - arrow.scale, arrow.scale
    return len(str(2**arrow.bit_width)), 0


def _common_decimal(left: tuple[int, int], right: tuple[int, int]) -> pa.DataType | None:
    import pyarrow as pa

    whole, fraction = max(left[0], right[0]), max(left[1], right[1])
    return pa.decimal128(whole + fraction, fraction) if whole + fraction <= _MOST_DIGITS else None


_Rendered = TypeVar("_Rendered")


class _Renderer(ABC, Generic[_Rendered]):
    """Renders each kind of test by a method of its own."""

    def leaf(self, node: Leaf) -> _Rendered:
        match node:
            case Constant():
                return self.constant(node)
            case IsNull():
                return self.is_null(node)
            case Unless():
                return self.unless(node)
            case Compare():
                return self.compare(node)
            case IsIn():
                return self.is_in(node)
            case TextTest():
                return self.text_test(node)
            case CompareColumns():
                return self.columns(node)

    @abstractmethod
    def constant(self, node: Constant) -> _Rendered: ...

    @abstractmethod
    def is_null(self, node: IsNull) -> _Rendered: ...

    @abstractmethod
    def unless(self, node: Unless) -> _Rendered: ...

    @abstractmethod
    def compare(self, node: Compare) -> _Rendered: ...

    @abstractmethod
    def is_in(self, node: IsIn) -> _Rendered: ...

    @abstractmethod
    def text_test(self, node: TextTest) -> _Rendered: ...

    @abstractmethod
    def columns(self, node: CompareColumns) -> _Rendered: ...


class _Sql(_Renderer[str]):
    """Writes SQL; the engines differ in names, values and functions."""

    functions: dict[str, str]

    def write(self, node: Node) -> str:
        if not isinstance(node, Joined):
            return self.leaf(node)
        parts = [self.write(part) for part in node.parts]
        while len(parts) > _CHAIN:
            chunks = [parts[at : at + _CHAIN] for at in range(0, len(parts), _CHAIN)]
            parts = [f"({f' {node.word} '.join(chunk)})" for chunk in chunks]
        return f"({f' {node.word} '.join(parts)})"

    def constant(self, node: Constant) -> str:
        return str(node.answer).upper()

    def is_null(self, node: IsNull) -> str:
        return f"{self.operand(node.left)} IS {'NOT ' if node.negated else ''}NULL"

    def unless(self, node: Unless) -> str:
        empty = "NOT NULL OR" if node.answer else "NULL AND"
        return f"({self.operand(node.left)} IS {empty} CAST(NULL AS BOOLEAN))"

    def compare(self, node: Compare) -> str:
        operand = self.operand(node.left)
        if isinstance(node.value, bool):
            return operand if (node.sign == "=") is node.value else f"NOT {operand}"
        return f"{operand} {node.sign} {self.value(node.value, node.left.type)}"

    def is_in(self, node: IsIn) -> str:
        sign, word = ("!=", "AND") if node.negated else ("=", "OR")
        special = [value for value in node.values if is_special(value) or isinstance(value, bool)]
        tests = [self.leaf(Compare(sign, node.left, value)) for value in special]
        if texts := [self.value(value, node.left.type) for value in node.values if value not in special]:
            tests.append(self.listed(node.left, texts, node.negated))
        return tests[0] if len(tests) == 1 else f"({f' {word} '.join(tests)})"

    def listed(self, left: Operand, texts: Sequence[str], negated: bool) -> str:
        return f"{self.operand(left)} {'NOT ' if negated else ''}IN ({', '.join(texts)})"

    def text_test(self, node: TextTest) -> str:
        operand, text = self.operand(node.left), self.text(node.text)
        negation = "NOT " if node.negated else ""
        if node.function == "like":
            return f"{operand} {negation}LIKE {text}"
        return f"{negation}{self.functions.get(node.function, node.function)}({operand}, {text})"

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Call):
            return self.call(operand.function, operand.column)
        return ".".join("`" + name.replace("`", "``") + "`" for name in operand.path)

    def call(self, function: str, column: ColumnPath) -> str:
        return f"{self.functions.get(function, function)}({self.operand(column)})"

    @abstractmethod
    def text(self, text: str) -> str: ...

    @abstractmethod
    def value(self, value: Value, arrow: pa.DataType) -> str: ...


class _LanceSql(_Sql):
    functions = {"length": "character_length"}

    def compare(self, node: Compare) -> str:
        if kind_of(node.left.type) == FLOAT and isinstance(node.value, float):
            return self._float(node, node.value)
        if isinstance(node.value, bytes):
            return (
                f"{self._bytes(node.left, node.value)} {node.sign} {self.value(node.value, node.left.type)}"
            )
        return super().compare(node)

    def _bytes(self, operand: Operand, value: bytes) -> str:
        """Return a column as Lance compares it with bytes: of another size only if it has no fixed size."""
        from pyarrow import types

        text = self.operand(operand)
        if not types.is_fixed_size_binary(operand.type) or len(value) == operand.type.byte_width:
            return text
        return f"arrow_cast({text}, 'Binary')"

    def listed(self, left: Operand, texts: Sequence[str], negated: bool) -> str:
        text = super().listed(left, texts, negated)
        # Without it, Lance simplifies `n NOT IN (1) OR n NOT IN (2)` to true, even for a null n.
        return f"({text} AND {self.operand(left)} IS NOT NULL)" if negated else text

    def _float(self, node: Compare, value: float) -> str:
        """Compare as in the order in which NaNs with a sign are below all else, and -0.0 is below 0.0."""
        operand, sign = self.operand(node.left), node.sign
        lowest, highest = (self.value(limit, node.left.type) for limit in (-math.inf, math.inf))
        if math.isnan(value):
            if sign in ("=", ">="):
                return f"({operand} > {highest} OR {operand} < {lowest})"
            return f"({operand} >= {lowest} AND {operand} <= {highest})"
        below, above = (
            self.value(-0.0 if value == 0 else value, node.left.type),
            self.value(value, node.left.type),
        )
        if sign in ("=", "!="):
            if value:
                return f"{operand} {sign} {above}"
            around = f"({operand} >= {below} AND {operand} <= {above})"
            return around if sign == "=" else f"({operand} < {below} OR {operand} > {above})"
        limit = below if sign in ("<", ">=") else above
        if sign in ("<", "<="):
            return f"({operand} {sign} {limit} AND {operand} >= {lowest})"
        return f"({operand} {sign} {limit} OR {operand} < {lowest})"

    def columns(self, node: CompareColumns) -> str:
        common = common_type(node.left.type, node.right.type)
        left, right = (self._cast(operand, common) for operand in (node.left, node.right))
        if kind_of(common) != FLOAT:
            return f"{left} {node.sign} {right}"
        if node.sign in (">", ">="):
            left, right = right, left
        match node.sign:
            case "=" | "!=":
                same = f"({left} = {right} OR (isnan({left}) AND isnan({right})))"
                return same if node.sign == "=" else f"NOT {same}"
            case "<" | ">":
                less = f"NOT isnan({left}) AND (isnan({right}) OR {left} < {right})"
                return f"(({less}) OR ({right} IS NULL AND CAST(NULL AS BOOLEAN)))"
        less = f"isnan({right}) OR (NOT isnan({left}) AND {left} <= {right})"
        return f"(({less}) AND ({left} IS NOT NULL OR CAST(NULL AS BOOLEAN)))"

    def _cast(self, operand: Operand, common: pa.DataType | None) -> str:
        text = self.operand(operand)
        if common is not None and operand.type != common:
            text = f"arrow_cast({text}, '{_lance_type(common)}')"
        # Adding zero removes the sign of a zero.
        return f"({text} + arrow_cast('0', 'Float64'))" if kind_of(common) == FLOAT else text

    def call(self, function: str, column: ColumnPath) -> str:
        if function in ("year", "month", "day"):
            text = self.operand(column)
            if kind_of(column.type) == TIMESTAMP and column.type.unit == "ns":
                text = f"arrow_cast({text}, 'Date32')"  # Lance overflows at years that nanoseconds don't have
            return f"date_part('{function}', {text})"
        return super().call(function, column)

    def text(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def value(self, value: Value, arrow: pa.DataType) -> str:
        from pyarrow import types

        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        if isinstance(value, float):
            return f"arrow_cast('{value!r}', '{_lance_type(arrow)}')"
        if kind_of(arrow) == DECIMAL:
            return f"arrow_cast('{_decimal(value, arrow.scale)}', '{_lance_type(arrow)}')"
        if types.is_date32(arrow):
            return f"date '{(_EPOCH + dt.timedelta(days=value)).date().isoformat()}'"
        if kind_of(arrow) == INTEGER and abs(value) < 2**63:
            return str(value)
        if kind_of(arrow) == INTEGER:
            return f"arrow_cast('{value}', '{_lance_type(arrow)}')"
        bits = "Int32" if types.is_time32(arrow) else "Int64"
        return f"arrow_cast(arrow_cast({_lance_integer(value)}, '{bits}'), '{_lance_type(arrow)}')"


def _lance_integer(value: int) -> str:
    return str(value) if abs(value) < 2**63 else f"'{value}'"


def _lance_type(arrow: pa.DataType) -> str:
    """Return a type's name for `arrow_cast`."""
    from pyarrow import types

    kind = kind_of(arrow)
    if kind == INTEGER:
        return f"{'U' if types.is_unsigned_integer(arrow) else ''}Int{arrow.bit_width}"
    if kind == DECIMAL:
        return f"Decimal{arrow.bit_width}({arrow.precision}, {arrow.scale})"
    if kind == FLOAT:
        return f"Float{arrow.bit_width}"
    if kind in (TEXT, BYTES):
        return "LargeUtf8" if kind == TEXT else "LargeBinary"
    if kind == DATE:
        return f"Date{arrow.bit_width}"
    if kind in (TIMESTAMP, ZONED):
        zone = "None" if arrow.tz is None else f'Some("{arrow.tz}")'
        return f"Timestamp({_UNITS[arrow.unit]}, {zone})"
    return f"Time{32 if types.is_time32(arrow) else 64}({_UNITS[arrow.unit]})"


class _SparkSql(_Sql):
    functions = {"starts_with": "startswith", "ends_with": "endswith"}

    def columns(self, node: CompareColumns) -> str:
        left, right = self.operand(node.left), self.operand(node.right)
        if kind_of(common_type(node.left.type, node.right.type)) == FLOAT:
            left, right = f"CAST({left} AS DOUBLE)", f"CAST({right} AS DOUBLE)"
        return f"{left} {node.sign} {right}"

    def text(self, text: str) -> str:
        # Escapes in text depend on the session's configuration, and ${…} is replaced.
        return f"'{text}'" if _PLAIN_TEXT.fullmatch(text) else f"CAST(X'{text.encode().hex()}' AS STRING)"

    def value(self, value: Value, arrow: pa.DataType) -> str:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        if isinstance(value, float):
            return f"CAST('{value!r}' AS DOUBLE)".replace("inf'", "Infinity'")
        return self._units(value, arrow)

    def _units(self, value: int, arrow: pa.DataType) -> str:
        kind = kind_of(arrow)
        if kind == DECIMAL:
            return f"CAST('{_decimal(value, arrow.scale)}' AS DECIMAL({arrow.precision}, {arrow.scale}))"
        if kind == INTEGER:
            return str(value) if value > -(2**63) else f"CAST('{value}' AS BIGINT)"
        if kind == DATE:
            days = value if arrow.bit_width == 32 else value // 86_400_000
            return f"DATE'{(_EPOCH + dt.timedelta(days=days)).date().isoformat()}'"
        microseconds = value * UNITS["us"] // UNITS[arrow.unit]
        if kind == ZONED:
            return f"timestamp_micros({microseconds})"
        moment = _EPOCH + dt.timedelta(microseconds=microseconds)
        if kind == TIMESTAMP:
            return f"TIMESTAMP_NTZ'{moment.isoformat(' ')}'"
        return f"TIME'{moment.time().isoformat()}'"


def _decimal(units: int, scale: int) -> str:
    if scale <= 0:
        return str(units * 10**-scale)
    digits = str(abs(units)).rjust(scale + 1, "0")
    return f"{'-' if units < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def lance_sql(node: Node) -> str:
    """Return a condition in Lance's SQL."""
    return _LanceSql().write(node)


def spark_sql(node: Node) -> str:
    """Return a condition in Spark's SQL."""
    return _SparkSql().write(node)


def mask(node: Node, rows: pa.RecordBatch | pa.Table) -> Any:
    """Return for each row whether it matches: true, false or null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def column(path: Sequence[str]) -> Any:
        values = rows.column(path[0])
        return functools.reduce(lambda parent, name: pc.struct_field(parent, [name]), path[1:], values)

    matching = _ArrowTests(column).evaluate(node)
    return pa.repeat(matching, rows.num_rows) if isinstance(matching, pa.Scalar) else matching


def expression(node: Node) -> pc.Expression | None:
    """Return a condition as an Arrow expression; None if it has too many tests."""
    import pyarrow.compute as pc

    if leaves(node) > _MOST_PRUNING:
        return None
    evaluated = _ArrowTests(lambda path: pc.field(*path)).evaluate(node)
    return evaluated if isinstance(evaluated, pc.Expression) else pc.scalar(evaluated)


class _ArrowTests(_Renderer[Any]):
    """Evaluates a tree with Arrow's functions: on arrays, or as an expression."""

    def __init__(self, column: Callable[[Sequence[str]], Any]) -> None:
        self._column = column

    def evaluate(self, node: Node) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not isinstance(node, Joined):
            return self.leaf(node)
        join = pc.and_kleene if node.word == "AND" else pc.or_kleene
        parts = sorted(map(self.evaluate, node.parts), key=lambda part: isinstance(part, pa.Scalar))
        # Arrow can't join a constant with an expression unless the expression comes first.
        return functools.reduce(join, parts)

    def constant(self, node: Constant) -> Any:
        import pyarrow as pa

        return pa.scalar(node.answer)

    def is_null(self, node: IsNull) -> Any:
        import pyarrow.compute as pc

        tested = pc.is_null(self._stored(node.left))
        return pc.invert(tested) if node.negated else tested

    def unless(self, node: Unless) -> Any:
        import pyarrow as pa

        return self._for_values(node.left, pa.scalar(node.answer))

    def _for_values(self, operand: Operand, answer: Any) -> Any:
        """Return an answer, but null where the column is null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        present = pc.or_kleene(pc.is_valid(self._stored(operand)), pa.scalar(None, pa.bool_()))
        absent = pc.and_kleene(pc.is_null(self._stored(operand)), pa.scalar(None, pa.bool_()))
        return pc.or_kleene(pc.and_kleene(present, answer), absent)

    def compare(self, node: Compare) -> Any:
        import pyarrow.compute as pc

        values = self._operand(node.left)
        if not isinstance(node.value, float):
            return _signs()[node.sign](values, _scalar(node.value, self._type(node.left)))
        if math.isnan(node.value):
            same = pc.is_nan(values)
            return same if node.sign in ("=", ">=") else pc.invert(same)
        tested = _signs()[node.sign](values, _scalar(node.value, self._type(node.left)))
        # The test for NaN is explicit, since the statistics by which Arrow skips files leave NaN out.
        return pc.or_kleene(tested, pc.is_nan(values)) if node.sign in (">", ">=", "!=") else tested

    def is_in(self, node: IsIn) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        special = [value for value in node.values if is_special(value)]
        tests = [self.compare(Compare("=", node.left, value)) for value in special]
        if others := [value for value in node.values if value not in special]:
            arrow = self._type(node.left)
            values = (
                pa.array([_scalar(value, arrow).as_py() for value in others], arrow)
                if _is_simple(arrow)
                else None
            )
            if values is None:
                values = pa.concat_arrays([pa.repeat(_scalar(value, arrow), 1) for value in others])
            listed = pc.is_in(self._operand(node.left), value_set=values)
            tests.append(self._for_values(node.left, listed))
        tested = functools.reduce(pc.or_kleene, tests)
        return pc.invert(tested) if node.negated else tested

    def text_test(self, node: TextTest) -> Any:
        import pyarrow.compute as pc

        values = self._operand(node.left)
        tests: dict[str, Callable[[], Any]] = {
            "like": lambda: pc.match_like(values, pattern=node.text),
            "starts_with": lambda: pc.starts_with(values, pattern=node.text),
            "ends_with": lambda: pc.ends_with(values, pattern=node.text),
            "contains": lambda: pc.match_substring(values, pattern=node.text),
        }
        tested = tests[node.function]()
        return pc.invert(tested) if node.negated else tested

    def columns(self, node: CompareColumns) -> Any:
        import pyarrow.compute as pc

        common = common_type(node.left.type, node.right.type)
        left, right = (self._operand(operand).cast(common) for operand in (node.left, node.right))
        if kind_of(common) != FLOAT:
            return _signs()[node.sign](left, right)
        if node.sign in (">", ">="):
            return self.columns(CompareColumns({">": "<", ">=": "<="}[node.sign], node.right, node.left))
        tested = _signs()["=" if node.sign == "!=" else node.sign](left, right)
        nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
        greatest = {
            "<": lambda: pc.and_kleene(pc.invert(nan_left), nan_right),
            "<=": lambda: nan_right,
        }.get(node.sign, lambda: pc.and_kleene(nan_left, nan_right))()
        tested = self._for_values(node.left, self._for_values(node.right, pc.or_kleene(tested, greatest)))
        return pc.invert(tested) if node.sign == "!=" else tested

    def _stored(self, operand: Operand) -> Any:
        return self._column((operand.column if isinstance(operand, Call) else operand).path)

    def _operand(self, operand: Operand) -> Any:
        import pyarrow.compute as pc

        if isinstance(operand, ColumnPath):
            values, arrow = self._column(operand.path), self._type(operand)
            return values if arrow == operand.type else values.cast(arrow)
        functions = {
            "length": pc.utf8_length,
            "octet_length": pc.binary_length,
            "year": pc.year,
            "month": pc.month,
            "day": pc.day,
        }
        return functions[operand.function](self._operand(operand.column)).cast(operand.type)

    @staticmethod
    def _type(operand: Operand) -> pa.DataType:
        """Return the type in which Arrow compares values, since it can't compare all that it stores."""
        import pyarrow as pa

        arrow = operand.type
        kind = kind_of(arrow)
        if kind == TEXT and arrow != pa.large_string():
            return pa.string()
        if kind == BYTES and arrow != pa.large_binary():
            return pa.binary()
        return pa.float32() if arrow == pa.float16() else arrow


def _is_simple(arrow: pa.DataType) -> bool:
    return kind_of(arrow) in (INTEGER, FLOAT, TEXT, BYTES, BOOLEAN)


def _scalar(value: Value, arrow: pa.DataType) -> Any:
    import pyarrow as pa

    kind = kind_of(arrow)
    if kind == DECIMAL:
        from decimal import Context, Decimal

        number = Decimal(int(value)).scaleb(-arrow.scale, Context(prec=100))
        return pa.scalar(number, arrow)
    if kind in (TEXT, BYTES, INTEGER, FLOAT, BOOLEAN):
        return pa.scalar(value, arrow)
    bits = pa.int32() if arrow.bit_width == 32 else pa.int64()
    return pa.scalar(value, bits).cast(arrow)


@functools.cache
def _signs() -> dict[str, Callable[[Any, Any], Any]]:
    import pyarrow.compute as pc

    return {
        "=": pc.equal,
        "!=": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
