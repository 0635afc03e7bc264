"""Expressions for the values of columns, in Lance's SQL: parsed completely, and rendered from the tree.

Only Lance evaluates them, so they may call all of its functions that give the same result each time. Lance
checks the types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_lancens.conditions.condition import Names

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_lancens.conditions.syntax import Source, SqlNode

_NAMES = """
abs acos array_append array_concat array_contains array_distinct array_element array_has
array_has_all array_has_any array_length array_max array_min array_position array_slice array_sort
array_to_string arrow_cast ascii asin atan atan2 bit_length btrim cardinality cbrt ceil char_length
character_length chr coalesce concat concat_ws contains cos cosh date_part date_trunc decode degrees
digest encode ends_with exp factorial find_in_set flatten floor from_unixtime gcd get_field greatest
ifnull initcap instr isnan iszero lcm least left length levenshtein ln log log10 log2 lower lpad
ltrim make_array make_date md5 named_struct nanvl nullif nvl nvl2 octet_length pi pow power radians
regexp_count regexp_like regexp_match regexp_replace repeat replace reverse right round rpad rtrim
sha224 sha256 sha384 sha512 signum sin sinh split_part sqrt starts_with string_to_array strpos
struct substr substr_index substring tan tanh to_char to_date to_hex to_timestamp
to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds to_unixtime
translate trim trunc upper
"""
FUNCTIONS = frozenset(_NAMES.split())
"""Lance's functions that give the same result each time."""
_BINARY = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "DPipe": "||"} | {
    "EQ": "=",
    "NEQ": "!=",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
    "And": "AND",
    "Or": "OR",
}
_TYPES = {
    "INT": "int",
    "BIGINT": "bigint",
    "SMALLINT": "smallint",
    "TINYINT": "tinyint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "TEXT": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "DECIMAL": "decimal",
    "BOOLEAN": "boolean",
}


def parse_expression(text: str, schema: pa.Schema, argument: str) -> str:
    """Parse an expression for the values of a column; return it in Lance's SQL.

    Args:
        text: the expression, see docs/conditions.md.
        schema: the columns that it may name.
        argument: what the caller calls the expression, for messages.

    Raises:
        InvalidInputError: (13) it isn't exactly one expression, or names an unknown column or function; the
            message marks the place.
    """
    from airflow_provider_lancens.conditions.syntax import EXPRESSION, LanceExpressions, Source

    source = Source(text, argument, "expression")
    parsed = source.parse(LanceExpressions, EXPRESSION)
    return _Writer(source, Names(source, schema)).write(parsed)


class _Writer:
    """Writes what sqlglot has parsed; what Lance doesn't have is refused."""

    def __init__(self, source: Source, names: Names) -> None:
        self._source = source
        self._names = names

    def write(self, node: SqlNode) -> str:  # noqa: C901 one line a kind of node
        from sqlglot import exp

        operator = _BINARY.get(type(node).__name__)
        if operator is not None:
            return self._chain(node, operator)
        match node:
            case exp.Paren():
                return f"({self.write(node.this)})"
            case exp.Column() | exp.Dot():
                return ".".join("`" + name.replace("`", "``") + "`" for name in self._names.column(node).path)
            case exp.Literal():
                text = str(node.this)
                return "'" + text.replace("'", "''") + "'" if node.is_string else text
            case exp.Boolean():
                return str(bool(node.this)).upper()
            case exp.Null():
                return "NULL"
            case exp.Neg():
                return f"(-{self.write(node.this)})"
            case exp.Not():
                return f"(NOT {self.write(node.this)})"
            case exp.Is() if isinstance(node.expression, exp.Null | exp.Boolean):
                return f"({self.write(node.this)} IS {self.write(node.expression)})"
            case exp.In() if node.expressions and not node.args.get("query"):
                return f"({self.write(node.this)} IN ({self._list(node.expressions)}))"
            case exp.Between() if node.args.get("symmetric") is None:
                low, high = node.args["low"], node.args["high"]
                return f"({self.write(node.this)} BETWEEN {self.write(low)} AND {self.write(high)})"
            case exp.Like():
                negation = "NOT " if node.args.get("negate") else ""
                return f"({self.write(node.this)} {negation}LIKE {self.write(node.expression)})"
            case exp.Cast():
                return self._cast(node)
            case exp.Anonymous():
                return self._call(node)
        raise self._source.at(node, "expressions don't have this")

    def _chain(self, node: SqlNode, operator: str) -> str:
        """Write a chain of one operator, such as ``a + b + c``, without a call for each link."""
        kind, parts = type(node), []
        while isinstance(node, kind):
            parts.append(self.write(node.expression))
            node = node.this
        return f"({f' {operator} '.join([self.write(node), *reversed(parts)])})"

    def _list(self, nodes: list[SqlNode]) -> str:
        return ", ".join(map(self.write, nodes))

    def _call(self, node: SqlNode) -> str:
        name = str(node.this).lower()
        if name not in FUNCTIONS:
            raise self._source.at(
                node,
                f"no function {str(node.this)!r} in expressions; see docs/conditions.md",
            )
        return f"`{name}`({self._list(node.expressions)})"  # `trim` is a keyword of Lance

    def _cast(self, node: SqlNode) -> str:
        from sqlglot import exp

        kind = node.to.this.name if node.to else ""
        digits = [parameter.this for parameter in node.to.expressions] if node.to else []
        name = _TYPES.get(kind)
        sized = [
            int(str(digit.this)) for digit in digits if isinstance(digit, exp.Literal) and not digit.is_string
        ]
        if name is None or len(sized) < len(digits) or (digits and name != "decimal"):
            raise self._source.at(node, f"CAST: expected one of {', '.join(sorted(set(_TYPES.values())))}")
        if name in ("date", "timestamp") and isinstance(node.this, exp.Literal) and node.this.is_string:
            return f"{name} {self.write(node.this)}"
        size = f"({', '.join(map(str, sized))})" if sized else ""
        return f"CAST({self.write(node.this)} AS {name}{size})"
