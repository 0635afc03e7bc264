"""Rename columns of a table, widen their types, and allow nulls in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit.schema_commits import SchemaStep
from airflow_provider_lancens.spark.results import SchemaResult
from airflow_provider_lancens.spark.schema.add_columns import type_of
from airflow_provider_lancens.spark.schema.alterations import alter, file_format
from airflow_provider_lancens.spark.schema.column_changes import (
    PlannedChange,
    change_columns,
    check_indices,
    check_new_schema,
    missing_column,
)
from airflow_provider_lancens.spark.schema.merge_plan import Path, merge_plan, widens
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace


def alter_columns(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    rename: Mapping[str, str] | None = None,
    types: Mapping[str, str | pa.DataType] | None = None,
    nullable: Sequence[str] | None = None,
    drop_indices: bool = False,
) -> SchemaResult:
    """Rename columns, widen their types, and allow nulls in them; what is already so is left as it is.

    Names and nulls are metadata. To widen a column, this process rewrites it, and no other column.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        rename: new names by the current ones. A column that has the new name already, while none has the old
            one, counts as renamed.
        types: types by the columns' new names, such as ``bigint``; each must represent all values of the
            present type. That of a struct may also have further fields.
        nullable: columns to allow nulls in, by their new names.
        drop_indices: whether indices on columns that are widened may be dropped; otherwise they are refused.

    Returns:
        The version that has the columns so.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) a name or a type is invalid, both names of a `rename` exist, or an index
            covers a column that is to be widened.
        ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
        ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
        InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
        TableSchemaValidationError: (20) a type can't represent all values of the present one, or Lance can't
            convert to it.
    """
    if isinstance(nullable, str):
        raise spec_errors.InvalidInputError(f"nullable: expected a list of columns, got {nullable!r}")
    parsed = {name: type_of(given, f"types[{name!r}]") for name, given in (types or {}).items()}
    change = _Alterations(rename or {}, parsed, nullable or (), drop_indices)
    if not (change.rename or change.types or change.nullable):
        raise spec_errors.InvalidInputError("rename, types, nullable: expected at least one column to alter")
    return change_columns(namespace, table, change)


@dataclass(frozen=True, slots=True)
class _Alterations:
    rename: Mapping[str, str]
    types: Mapping[str, pa.DataType]
    nullable: Sequence[str]
    drop_indices: bool

    def plan(self, table: str, latest: LanceDataset) -> PlannedChange:
        renamed = self._renamed(table, latest.schema)
        columns = {renamed.get(one.name, one.name): one for one in latest.schema}
        for argument, names in {"types": self.types, "nullable": self.nullable}.items():
            for name in names:
                if name not in columns:
                    raise missing_column(table, argument, name, latest.schema)
        schema = pa.schema([one.with_name(name) for name, one in columns.items()])
        check_new_schema(table, schema, renamed.values())
        nullable = [name for name in self.nullable if not columns[name].nullable]
        retyped = _retyped(table, columns, self.types, file_format(latest))
        current = {name: one.name for name, one in columns.items()}
        paths = [(current[path[0]], *path[1:]) for path in retyped.widened]
        why = f"changing the type of {', '.join(sorted({path[0] for path in retyped.widened}))}"
        dropped = (
            check_indices(table, latest, paths, drop_indices=self.drop_indices, why=why) if paths else []
        )
        steps = [*_renaming(renamed, nullable, current), *_dropping(dropped), *retyped.steps()]
        changed = dict.fromkeys([*renamed.values(), *nullable, *retyped.columns])
        return PlannedChange(steps, list(changed), dropped)

    def _renamed(self, table: str, schema: pa.Schema) -> dict[str, str]:
        """Return the new names of the columns that are still to be renamed, by their current ones."""
        left = {}
        for old, new in self.rename.items():
            if old in schema.names and new in schema.names and old != new:
                raise spec_errors.InvalidInputError(
                    f"table {table}: rename: columns {old!r} and {new!r} both exist"
                )
            if old not in schema.names and new not in schema.names:
                raise missing_column(table, "rename", old, schema)
            if new not in schema.names:
                left[old] = new
        if repeated := [new for new in left.values() if list(left.values()).count(new) > 1]:
            raise spec_errors.InvalidInputError(f"rename: {repeated[0]!r} is the new name of several columns")
        return left


@dataclass(slots=True)
class _Retyped:
    """Columns that are still to be retyped, by their new names."""

    widened: dict[Path, pa.DataType] = field(default_factory=dict)
    added: list[pa.Field] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def steps(self) -> list[SchemaStep]:
        steps = []
        if self.widened:
            widened = dict(self.widened)
            description = f"widens {', '.join(self.text)}"
            steps.append(SchemaStep(description, lambda opened: alter(opened, widened)))
        if self.added:
            schema = pa.schema(self.added)
            names = ", ".join(one.name for one in self.added)
            steps.append(SchemaStep(f"adds fields to {names}", lambda opened: opened.add_columns(schema)))
        return steps


def _retyped(
    table: str,
    columns: Mapping[str, pa.Field],
    types: Mapping[str, pa.DataType],
    formatted: tuple[int, int],
) -> _Retyped:
    left, problems = _Retyped(), []
    for name, to in types.items():
        present = columns[name].type
        if present == to:
            continue
        # Lance converts them, although values of one of them fit the other one without that.
        if widens(present, to):
            left.widened[(name,)] = to
        else:
            old = pa.schema([pa.field(name, present)])
            merged = merge_plan(pa.schema([(name, to)]), old, file_format=formatted)
            if merged.reasons or merged.schema.field(name).type != to:
                problems.append(f"{name} is {present}, which cannot become {to} without loss")
            left.widened |= {path: new for path, _, new in merged.widenings}
            left.added += merged.additions
        left.columns.append(name)
        left.text.append(f"{name} from {present} to {to}")
    if problems:
        raise spec_errors.TableSchemaValidationError(
            f"table {table}: types: {'; '.join(problems)}, or which Lance cannot convert; add a column, "
            "computed from it, instead"
        )
    return left


def _renaming(
    renamed: Mapping[str, str], nullable: Sequence[str], current: Mapping[str, str]
) -> list[SchemaStep]:
    changes: dict[str, dict[str, Any]] = {old: {"path": old, "name": new} for old, new in renamed.items()}
    for name in nullable:
        changes.setdefault(current[name], {"path": current[name]})["nullable"] = True
    if not changes:
        return []
    texts = [f"renames {old} to {new}" for old, new in renamed.items()]
    texts += [f"allows nulls in {name}" for name in nullable]
    given: list[Any] = list(changes.values())
    return [SchemaStep("; ".join(texts), lambda opened: opened.alter_columns(*given))]


def _dropping(indices: Sequence[str]) -> list[SchemaStep]:
    return [SchemaStep(f"drops index {name}", methodcaller("drop_index", name)) for name in indices]
