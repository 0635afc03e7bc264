"""Add columns to a table: of a type and without values, or computed by an SQL expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import parse_expression
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit.schema_commits import SchemaStep
from airflow_provider_lancens.spark.results import SchemaResult
from airflow_provider_lancens.spark.schema.column_changes import (
    PlannedChange,
    change_columns,
    check_new_schema,
)
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec
from airflow_provider_lancens.spark.type_names import parse_type

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace


def add_columns(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    columns: Mapping[str, str | pa.DataType] | None = None,
    *,
    expressions: Mapping[str, str] | None = None,
) -> SchemaResult:
    """Add columns to a table; one that exists is left as it is, so the call can be repeated.

    A column without values takes no space. For a computed one, this process reads the columns that the
    expression names, and writes the new one; rows that others append meanwhile are computed too. All are
    nullable.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        columns: types of columns without values, by name: ``bigint``, ``struct<x: double, y: double>`` or a
            PyArrow type; docs/schema-changes.md lists them.
        expressions: expressions by name, such as ``price * quantity``, see docs/conditions.md.

    Returns:
        The version that has the columns.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidInputError: (13) a name, a type or an expression is invalid.
        ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
        ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
        InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
        TableSchemaValidationError: (20) a column exists with another type.
    """
    types = {name: type_of(given, f"columns[{name!r}]") for name, given in (columns or {}).items()}
    computed = dict(expressions or {})
    if twice := [name for name in types if name in computed]:
        raise spec_errors.InvalidInputError(
            f"expressions: {', '.join(twice)} is in columns too; name it once"
        )
    if not types and not computed:
        raise spec_errors.InvalidInputError("columns, expressions: expected at least one column to add")
    if blank := [name for name, text in computed.items() if not text.strip()]:
        raise spec_errors.InvalidInputError(
            f"expressions: expected SQL for {', '.join(blank)}, got blank text"
        )
    return change_columns(namespace, table, _Additions(types, computed))


@dataclass(frozen=True, slots=True)
class _Additions:
    types: Mapping[str, pa.DataType]
    expressions: Mapping[str, str]

    def plan(self, table: str, latest: LanceDataset) -> PlannedChange:
        present = {field.name: field for field in latest.schema}
        _check_types(table, present, self.types)
        empty = {name: arrow for name, arrow in self.types.items() if name not in present}
        computed = {
            name: parse_expression(text, latest.schema, f"table {table}: expressions[{name!r}]")
            for name, text in self.expressions.items()
            if name not in present
        }
        new = [*empty, *computed]
        unknown = dict.fromkeys(computed, pa.int8())
        check_new_schema(table, pa.schema([*latest.schema, *(empty | unknown).items()]), new)
        # Lance makes a column of an expression that is never null one that may not be null.
        required = [n for n in self.expressions if n in present and not present[n].nullable]
        return PlannedChange([*_steps(empty, computed, required)], [*new, *required])


def _steps(
    empty: Mapping[str, pa.DataType], computed: Mapping[str, str], required: list[str]
) -> list[SchemaStep]:
    steps = []
    if empty:
        types = ", ".join(f"{name} ({arrow})" for name, arrow in empty.items())
        schema = pa.schema(list(empty.items()))
        steps.append(SchemaStep(f"adds {types}", lambda opened: opened.add_columns(schema)))
    if computed:
        texts = ", ".join(f"{name} ({sql})" for name, sql in computed.items())
        steps.append(SchemaStep(f"adds {texts}", lambda opened: opened.add_columns(dict(computed))))
    if required:
        changes: list[Any] = [{"path": name, "nullable": True} for name in required]
        description = f"allows nulls in {', '.join(required)}"
        steps.append(SchemaStep(description, lambda opened: opened.alter_columns(*changes)))
    return steps


def _check_types(table: str, present: Mapping[str, pa.Field], types: Mapping[str, pa.DataType]) -> None:
    others = [
        f"{name} is {present[name].type}, not {arrow}"
        for name, arrow in types.items()
        if name in present and present[name].type != arrow
    ]
    if others:
        raise spec_errors.TableSchemaValidationError(
            f"table {table}: columns: {'; '.join(others)}; choose another name, or alter the column"
        )


def type_of(given: str | pa.DataType, argument: str) -> pa.DataType:
    """Return a type that is given by its name, or as it is.

    Raises:
        InvalidInputError: (13) it is none.
    """
    if isinstance(given, pa.DataType):
        return given
    if not isinstance(given, str):
        raise spec_errors.InvalidInputError(
            f"{argument}: expected the name of a type or a pyarrow.DataType, got {given!r}"
        )
    return parse_type(given, argument)
