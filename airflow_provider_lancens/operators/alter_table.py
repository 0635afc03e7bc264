"""Operator that adds, alters and drops columns of a table, in the task's process without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import check_flag, parse_list, parse_mapping, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.spark.lance_table import Table
    from airflow_provider_lancens.spark.results import SchemaResult

_CHANGES = ("rename", "types", "nullable", "add", "expressions", "drop")
_A_LIST = "a list of columns"


class LanceAlterTableOperator(LanceOperator):
    """Rename columns of a table, widen their types, allow nulls in them, add columns and drop them.

    The changes are made in this order, each in a commit of its own. A change that is already in place is
    skipped, so the task can be retried and cleared: a column that has the new name while none has the old one
    counts as renamed, a column that exists as added, a column that doesn't exist as dropped.

    Names, nulls, columns without values and drops are metadata; earlier versions still have dropped columns,
    and their bytes remain on the storage until a compaction and a clean-up of versions. To widen or compute a
    column, the task's process rewrites it, and no other column.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int,
    "columns": list[str], "dropped_indices": list[str], "seconds": float, "reason": str, "location": str |
    None}``: ``columns`` are the changed columns by their new names, ``dropped_indices`` the dropped indices.
    ``outcome`` is ``unchanged`` if there was nothing to do; otherwise, if an outlet is the table's asset or
    an asset alias, the extra of its event contains the table and both versions: of this try, without what an
    earlier one has committed.

    Args:
        table: table identifier, ``database$table``. Templated.
        rename: new names by the current ones. Templated.
        types: types by the columns' new names, such as ``bigint``; each must represent all values of the
            present type. The type of a struct may have further fields. Templated.
        nullable: columns to allow nulls in, by their new names. Templated.
        add: types of new columns without values, by name, such as ``bigint``, ``timestamp``,
            ``array<string>``, ``float[768]`` for a vector, or a PyArrow type. A column that exists with
            another type fails the task. New columns are nullable. Templated.
        expressions: expressions by name, see docs/conditions.md, such as ``price * quantity``, which compute
            the values of further new columns. Templated.
        drop: columns to drop. Templated.
        drop_indices: whether indices on columns that are widened or dropped may be dropped; otherwise the
            task fails.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        *_CHANGES,
        *LanceOperator.template_fields,
    )
    template_fields_renderers = dict.fromkeys(_CHANGES, "json")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        rename: Mapping[str, str] | None = None,
        types: Mapping[str, Any] | None = None,
        nullable: Sequence[str] | None = None,
        add: Mapping[str, Any] | None = None,
        expressions: Mapping[str, str] | None = None,
        drop: Sequence[str] | None = None,
        drop_indices: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if all(given is None for given in (rename, types, nullable, add, expressions, drop)):
            raise ValueError(f"{', '.join(_CHANGES)}: expected at least one of them")
        self.table = table
        self.rename = rename
        self.types = types
        self.nullable = nullable
        self.add = add
        self.expressions = expressions
        self.drop = drop
        self.drop_indices = check_flag("drop_indices", drop_indices)

    def execute(self, context: Context) -> dict[str, Any]:
        """Change the columns, unless they are already so.

        Raises:
            AirflowFailException: there is no such table or column, an argument is invalid, or the change
                would lose values or drop an index.
            LanceRetryableError: the metastore or the storage is unavailable, or every commit attempt
                conflicted; what was committed is found by the retry.
        """
        from airflow_provider_lancens.lineage.task_lineage import TableWrite

        table, started = parse_table(self.table), time.monotonic()
        with self.opened(context) as lake:
            results = [change() for change in self._changes(lake.table(table))]
            if not results:
                raise AirflowFailException(f"{', '.join(_CHANGES)}: each is empty; expected a change")
            result = _as_one(results, started)
            write = TableWrite(
                table=table,
                version=result.version,
                previous_version=result.previous_version,
                committed=result.is_done,
                lifecycle="ALTER" if result.is_done else None,
                columns=result.columns,
            )
            self.note_lineage(lake.namespace, write)
        self.emit_asset_event(context, result)
        return result.as_dict()

    def _changes(self, table: Table) -> Iterator[Callable[[], SchemaResult]]:
        """Yield the changes that are requested, in the order in which they are made."""
        altered: dict[str, Any] = {
            "rename": parse_mapping("rename", self.rename),
            "types": parse_mapping("types", self.types),
            "nullable": parse_list("nullable", self.nullable, _A_LIST),
        }
        added, expressions = parse_mapping("add", self.add), parse_mapping("expressions", self.expressions)
        dropped = parse_list("drop", self.drop, _A_LIST)
        if again := sorted(altered["rename"].keys() & {*added, *expressions}):
            raise AirflowFailException(
                f"rename: column {again[0]!r} is renamed, and another column of this name is added. A retry "
                "would find both names, and couldn't tell whether the column was renamed. Nothing was done; "
                "add the column by another task, downstream"
            )
        if any(altered.values()):
            yield partial(table.alter_columns, **altered, drop_indices=self.drop_indices)
        if added or expressions:
            yield partial(table.add_columns, added, expressions=expressions)
        if dropped:
            yield partial(table.drop_columns, dropped, drop_indices=self.drop_indices)


def _as_one(results: Sequence[SchemaResult], started: float) -> SchemaResult:
    """Return the result of changes that were made one after the other."""
    from airflow_provider_lancens.spark.results import versions_of_steps

    previous, version = versions_of_steps(results)
    return replace(
        results[-1],
        operation="alter_table",
        outcome="done" if any(result.is_done for result in results) else "unchanged",
        version=version,
        previous_version=previous,
        columns=tuple(dict.fromkeys(name for result in results for name in result.columns)),
        dropped_indices=tuple(name for result in results for name in result.dropped_indices),
        seconds=round(time.monotonic() - started, 3),
    )
