"""The text of a query: whether it is accepted, and the tables that it names. Nothing is run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens import spec_errors

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PARSE = "SELECT json_serialize_sql(?)"
_PRINT = "SELECT json_deserialize_sql(?)"
_ALLOWED = "a query is one SELECT, which may begin with WITH, and changes nothing"
_FUNCTIONS = ("generate_series", "range", "unnest")
"""Functions in FROM that read nothing but their arguments; others read files, memory, or the database."""
_LEVELS = ("catalog_name", "schema_name", "table_name")
_COLUMN_CHECK = ["col_name", "check_type", "check_result"]
"""The columns that Airflow's SQLColumnCheckOperator selects from the rows of all its checks."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query that may be run.

    Attributes:
        text: the query.
        tables: the tables that it names, each with its levels, outermost first.
        local_names: the names that its WITH clauses define, in lower case.
        branches: the same query as several ones, whose rows one after the other are its rows.
    """

    text: str
    tables: tuple[tuple[str, ...], ...]
    local_names: frozenset[str]
    branches: tuple[str, ...]

    @classmethod
    def parse(cls, parser: DuckDBPyConnection, text: object) -> Self:
        """Parse a query by the parser of the engine that will run it, so that both read the same.

        Args:
            parser: a connection, to which nothing is done.
            text: the query.

        Raises:
            InvalidInputError: (13) it isn't one query, or it reads something else than tables.
        """
        if not isinstance(text, str) or not text.strip():
            raise spec_errors.InvalidInputError(f"sql: expected a query, got {text!r}")
        parsed = json.loads(_answer(parser, _PARSE, text))
        if parsed["error"]:
            message = parsed["error_message"]
            reason = message if parsed["error_type"] == "parser" else f"{_ALLOWED}, got {text.strip()[:40]!r}"
            raise spec_errors.InvalidInputError(f"sql: {reason}{_place(text, parsed)}")
        statements = parsed["statements"]
        if len(statements) != 1:
            raise spec_errors.InvalidInputError(f"sql: {_ALLOWED}, got {len(statements)} statements")
        nodes = list(_nodes(statements[0]))
        for node in nodes:
            _check(node)
        named = [_levels(node) for node in nodes if node.get("type") == "BASE_TABLE"]
        return cls(
            text,
            tuple(dict.fromkeys(named)),
            frozenset(name.lower() for node in nodes for name in _local_names(node)),
            tuple(_branches(parser, statements[0]["node"])) or (text,),
        )


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nodes(child)


def _check(node: dict[str, Any]) -> None:
    if node.get("type") == "SHOW_REF":
        raise spec_errors.InvalidInputError(f"sql: {_ALLOWED}; DESCRIBE, SHOW and SUMMARIZE aren't queries")
    if node.get("type") == "TABLE_FUNCTION":
        name = node["function"].get("function_name", "")
        if name.lower() not in _FUNCTIONS:
            raise spec_errors.InvalidInputError(
                f"sql: function {name!r} isn't allowed in FROM; a query reads tables, and of functions only "
                f"{', '.join(_FUNCTIONS)}"
            )


def _levels(node: dict[str, Any]) -> tuple[str, ...]:
    return tuple(node[level] for level in _LEVELS if node.get(level))


def _local_names(node: dict[str, Any]) -> Iterator[str]:
    ctes = node.get("cte_map")
    for entry in ctes.get("map", ()) if isinstance(ctes, dict) else ():
        yield entry["key"]


def _branches(parser: DuckDBPyConnection, node: dict[str, Any]) -> Iterator[str]:
    """Yield the branches of a query of the form that SQLColumnCheckOperator makes.

    It joins checks of any types by UNION ALL. In one query, the number of nulls in a column would be
    converted to the type of the least value of another column, which fails, or compares a number with text.
    """
    if _has_modifiers(node) or node.get("where_clause") or node.get("group_expressions"):
        return
    names = [column.get("column_names") for column in node.get("select_list", ())]
    if names != [[name] for name in _COLUMN_CHECK] or node["from_table"].get("type") != "SUBQUERY":
        return
    for branch in _united(node["from_table"]["subquery"]["node"]):
        yield _answer(parser, _PRINT, json.dumps({"error": False, "statements": [{"node": branch}]}))


def _united(node: dict[str, Any]) -> Sequence[dict[str, Any]]:
    if node.get("type") != "SET_OPERATION_NODE":
        return [node]
    if node.get("setop_type") != "UNION" or not node.get("setop_all") or _has_modifiers(node):
        return []
    # DuckDB 1.x nests two at a time, 2.x has a list.
    parts = [_united(part) for part in node.get("children") or [node["left"], node["right"]]]
    return [branch for part in parts for branch in part] if all(parts) else []


def _has_modifiers(node: dict[str, Any]) -> bool:
    return bool(node.get("modifiers")) or any(True for _ in _local_names(node))


def _answer(parser: DuckDBPyConnection, question: str, argument: str) -> str:
    [(answer,)] = parser.execute(question, [argument]).fetchall()
    return str(answer)


def _place(text: str, parsed: dict[str, Any]) -> str:
    position = parsed.get("position")
    if position is None:
        return ""
    return f", at {text[int(position) : int(position) + 40]!r}"
