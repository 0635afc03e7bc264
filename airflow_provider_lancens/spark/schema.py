"""Changes of a table's columns that are made without rows and without Spark: add, alter, drop.

Changes that are already in place are skipped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import parse_expression
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.unreadable_columns import check_values_left
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits, SchemaStep
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.results import SchemaResult, elapsed
from airflow_provider_lancens.spark.table.column_fit import (
    Path,
    alter,
    check_columns,
    file_format,
    indices_over,
    merge_plan,
    shown,
    widens,
)
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.type_names import parse_type

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace


_log = logging.getLogger(__name__)


class PlannedChange(NamedTuple):
    """What is left of a change at a version."""

    steps: Sequence[SchemaStep]
    """Each is one commit; after it the rest is planned again."""
    columns: Collection[str] = ()
    """The columns to change, by their names afterwards."""
    dropped_indices: Collection[str] = ()


class ColumnChange(Protocol):
    """A change of a table's columns."""

    OPERATION: ClassVar[str]
    """The verb that makes it."""

    def plan(self, table: str, latest: LanceDataset) -> PlannedChange:
        """Return the remaining changes at a version, or raise an error if one of them isn't possible."""


@observed()
def change_columns(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, change: ColumnChange
) -> SchemaResult:
    """Make a change of a table's columns; see `add_columns` for its errors."""
    started = time.monotonic()
    with resolved_table(namespace, table) as target:
        latest = _written(target)
        planned = change.plan(str(target.id), latest)
        commits = SchemaCommits(target, change.OPERATION)
        changed = commits.run(lambda newest: _first(change.plan(str(target.id), newest).steps), latest)
        committed = bool(commits.made)
        if committed:
            target.update_catalog_columns(changed.schema)
        result = SchemaResult(
            table=str(target.id),
            location=target.dataset.location,
            operation=change.OPERATION,
            outcome="done" if committed else "unchanged",
            version=commits.versions[-1] if committed else changed.version,
            previous_version=commits.versions[0] - 1 if committed else changed.version,
            columns=tuple(planned.columns) if committed else (),
            dropped_indices=tuple(planned.dropped_indices) if committed else (),
            seconds=elapsed(started),
        )
    _report(result, commits)
    return result


def check_new_schema(table: str, schema: pa.Schema, new: Iterable[str]) -> None:
    """Check the names of new columns.

    Args:
        table: the table's identifier, for messages.
        schema: all columns as they are to be.
        new: the names to check.

    Raises:
        InvalidInputError: (13) Lance can't store a name, or it differs from another one only in case.
    """
    check_columns(table, schema)
    spellings = [name.lower() for name in schema.names]
    if alike := [name for name in new if spellings.count(name.lower()) > 1]:
        raise spec_errors.InvalidInputError(
            f"table {table}: {', '.join(alike)}: another column differs from it only in case; choose "
            "another name"
        )


def check_indices(
    table: str, latest: LanceDataset, paths: Collection[Path], *, drop_indices: bool, why: str
) -> list[str]:
    """Return the names of the indices on columns that are changed, if they may be dropped.

    Raises:
        InvalidInputError: (13) there are some, and they may not be dropped.
    """
    indices = indices_over(latest, paths)
    if indices and not drop_indices:
        names = ", ".join(f"{name} ({shown(path)})" for name, path in indices)
        raise spec_errors.InvalidInputError(
            f"table {table}: {why} would drop the indices {names}; pass drop_indices=True if that is "
            "intended, and create them again afterwards"
        )
    return sorted({name for name, _ in indices})


def missing_column(
    table: str, argument: str, name: str, schema: pa.Schema
) -> spec_errors.TableColumnNotFoundError:
    """Return the error for a column that doesn't exist."""
    return spec_errors.TableColumnNotFoundError(
        f"table {table}: {argument}: column {name!r} does not exist; columns: {schema.names}"
    )


def _written(target: ResolvedTable) -> LanceDataset:
    latest = target.open_latest()
    if latest is None:
        raise target.nothing_written()
    return latest


def _first(steps: Sequence[SchemaStep]) -> SchemaStep | None:
    return steps[0] if steps else None


def _report(result: SchemaResult, commits: SchemaCommits) -> None:
    if not commits.made:
        _log.info("table %s: nothing to change in its columns at version %d", result.table, result.version)
    for version, change in commits.made:
        _log.info("table %s: version %d changed the columns: %s", result.table, version, change)
    if result.dropped_indices:
        names = ", ".join(result.dropped_indices)
        _log.warning("table %s: dropped the indices %s", result.table, names)


def add_columns(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    columns: Mapping[str, str | pa.DataType] | None = None,
    *,
    expressions: Mapping[str, str] | None = None,
) -> SchemaResult:
    """Add columns to a table; existing columns are left unchanged, so the call can be repeated.

    A column without values takes no space. For a computed one, this process reads the columns that the
    expression names, and writes the new one for all rows that are committed by then; rows that are committed
    afterwards have their own values, or null. All are nullable.

    See `Table.add_columns` for its arguments and errors.

    Returns:
        The version that has the columns.
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
    OPERATION: ClassVar = "add_columns"

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
        # Lance allows no nulls in a column of an expression that is never null.
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


def alter_columns(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    rename: Mapping[str, str] | None = None,
    types: Mapping[str, str | pa.DataType] | None = None,
    nullable: Sequence[str] | None = None,
    drop_indices: bool = False,
) -> SchemaResult:
    """Rename columns, widen their types, and allow nulls in them; changes already in place are skipped.

    Names and nulls are metadata. To widen a column, this process rewrites it, and no other column.

    See `Table.alter_columns` for its arguments and errors.

    Returns:
        The version that has the columns so.
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
    OPERATION: ClassVar = "alter_columns"

    rename: Mapping[str, str]
    types: Mapping[str, pa.DataType]
    nullable: Sequence[str]
    drop_indices: bool

    def plan(self, table: str, latest: LanceDataset) -> PlannedChange:
        renamed = self._renamed(table, latest.schema)
        columns = {renamed.get(field.name, field.name): field for field in latest.schema}
        for argument, names in {"types": self.types, "nullable": self.nullable}.items():
            for name in names:
                if name not in columns:
                    raise missing_column(table, argument, name, latest.schema)
        schema = pa.schema([field.with_name(name) for name, field in columns.items()])
        check_new_schema(table, schema, renamed.values())
        nullable = [name for name in self.nullable if not columns[name].nullable]
        retyped = _retyped(table, columns, self.types, file_format(latest))
        current = {name: field.name for name, field in columns.items()}
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
            names = ", ".join(field.name for field in self.added)
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


def drop_columns(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    columns: Sequence[str],
    *,
    drop_indices: bool = False,
) -> SchemaResult:
    """Drop columns of a table; columns that don't exist count as dropped, so the call can be repeated.

    Only metadata is written. Earlier versions still have the columns, and their bytes remain on the storage
    until a compaction and a clean-up of versions.

    See `Table.drop_columns` for its arguments and errors.

    Returns:
        The version without the columns.
    """
    if isinstance(columns, str) or not columns:
        raise spec_errors.InvalidInputError(f"columns: expected a list of columns, got {columns!r}")
    return change_columns(namespace, table, _Drops(tuple(columns), drop_indices))


@dataclass(frozen=True, slots=True)
class _Drops:
    OPERATION: ClassVar = "drop_columns"

    columns: Sequence[str]
    drop_indices: bool

    def plan(self, table: str, latest: LanceDataset) -> PlannedChange:
        present = [name for name in dict.fromkeys(self.columns) if name in latest.schema.names]
        if not present:
            return PlannedChange([])
        if len(present) == len(latest.schema.names):
            raise spec_errors.InvalidInputError(
                f"table {table}: columns: {', '.join(present)} are all of its columns; drop the table instead"
            )
        check_values_left(latest, present, table)
        why, paths = f"dropping {', '.join(present)}", [(name,) for name in present]
        dropped = check_indices(table, latest, paths, drop_indices=self.drop_indices, why=why)
        step = SchemaStep(f"drops {', '.join(present)}", lambda opened: opened.drop_columns(present))
        return PlannedChange([step], present, dropped)
