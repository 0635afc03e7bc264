"""Operators that add, alter and drop columns of a table, in the task's process without Spark."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import parse_list, parse_mapping, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.spark.results import SchemaResult


class _LanceSchemaOperator(LanceOperator):
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table

    def execute(self, context: Context) -> dict[str, Any]:
        """Change the columns, unless they are already so.

        Raises:
            AirflowFailException: there is no such table or column, an argument is invalid, or the change
                would lose values or drop an index.
            LanceRetryableError: the metastore or the storage is unavailable, or every commit attempt
                conflicted.
        """
        from airflow_provider_lancens.lineage.task_lineage import TableWrite

        table = parse_table(self.table)
        with self.connected(f"changing the columns of table {str(table)!r}") as namespace:
            result = self._change(namespace, table)
            write = TableWrite(
                table=table,
                version=result.version,
                previous_version=result.previous_version,
                committed=result.committed,
                lifecycle="ALTER" if result.committed else None,
                columns=result.columns,
            )
            self.note_lineage(namespace, write)
        if result.committed:
            self.emit_asset_event(context, table, result.version, result.previous_version)
        return result.as_dict()

    @abstractmethod
    def _change(self, namespace: LanceNamespace, table: TableId) -> SchemaResult:
        """Change the columns, unless they are already so."""


class LanceAddColumnsOperator(_LanceSchemaOperator):
    """Add columns to a table; one that exists is left as it is, so the task can be retried and cleared.

    Columns without values are metadata. To compute a column, the task's process reads those that the
    expression names and writes the new one. All new columns are nullable.

    Its XCom is ``{"table": str, "version": int, "previous_version": int, "columns": list[str],
    "dropped_indices": list[str], "seconds": float, "committed": bool}``: ``columns`` are those that the task
    added. ``committed`` is false if there was nothing to do; otherwise, if an outlet is the table's asset or
    an asset alias, the extra of its event contains the table and both versions.

    Args:
        table: table identifier, ``database$table``. Templated.
        columns: types of columns without values, by name, such as ``bigint``, ``timestamp``,
            ``array<string>``, ``float[768]`` for a vector, or a PyArrow type. One that exists with another
            type fails the task. Templated.
        expressions: expressions by name, see docs/conditions.md, such as ``price * quantity``, which compute
            the values of further columns. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "columns", "expressions", *LanceOperator.template_fields)
    template_fields_renderers = {"columns": "json", "expressions": "json"}

    def __init__(
        self,
        *,
        columns: Mapping[str, Any] | None = None,
        expressions: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns = columns
        self.expressions = expressions

    def _change(self, namespace: LanceNamespace, table: TableId) -> SchemaResult:
        from airflow_provider_lancens.spark.schema import add_columns

        columns = parse_mapping("columns", self.columns)
        expressions = parse_mapping("expressions", self.expressions)
        return add_columns(namespace, table, columns, expressions=expressions)


class LanceAlterColumnsOperator(_LanceSchemaOperator):
    """Rename columns of a table, widen their types, and allow nulls in them.

    What is already so is left as it is, so the task can be retried and cleared. Names and nulls are metadata.
    To widen a column, the task's process rewrites it, and no other column.

    Its XCom is ``{"table": str, "version": int, "previous_version": int, "columns": list[str],
    "dropped_indices": list[str], "seconds": float, "committed": bool}``: ``columns`` are those that the task
    changed, by their new names, ``dropped_indices`` the indices that it dropped. ``committed`` is false if
    there was nothing to do; otherwise, if an outlet is the table's asset or an asset alias, the extra of its
    event contains the table and both versions.

    Args:
        table: table identifier, ``database$table``. Templated.
        rename: new names by the current ones. A column that has the new name already, while none has the old
            one, counts as renamed. Templated.
        types: types by the columns' new names, such as ``bigint``; each must represent all values of the
            present type. That of a struct may have further fields. Templated.
        nullable: columns to allow nulls in, by their new names. Templated.
        drop_indices: whether indices on columns that are widened may be dropped; otherwise the task fails.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "rename", "types", "nullable", *LanceOperator.template_fields)
    template_fields_renderers = {"rename": "json", "types": "json", "nullable": "json"}

    def __init__(
        self,
        *,
        rename: Mapping[str, str] | None = None,
        types: Mapping[str, Any] | None = None,
        nullable: Sequence[str] | None = None,
        drop_indices: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rename = rename
        self.types = types
        self.nullable = nullable
        self.drop_indices = drop_indices

    def _change(self, namespace: LanceNamespace, table: TableId) -> SchemaResult:
        from airflow_provider_lancens.spark.schema import alter_columns

        return alter_columns(
            namespace,
            table,
            rename=parse_mapping("rename", self.rename),
            types=parse_mapping("types", self.types),
            nullable=parse_list("nullable", self.nullable, "a list of columns"),
            drop_indices=self.drop_indices,
        )


class LanceDropColumnsOperator(_LanceSchemaOperator):
    """Drop columns of a table; one that doesn't exist counts as dropped, so the task can be retried.

    Only metadata is written. Earlier versions still have the columns, and their bytes remain on the storage
    until a compaction and a clean-up of versions.

    Its XCom is ``{"table": str, "version": int, "previous_version": int, "columns": list[str],
    "dropped_indices": list[str], "seconds": float, "committed": bool}``: ``columns`` are those that the task
    dropped, ``dropped_indices`` the indices that it dropped with them. ``committed`` is false if there was
    nothing to do; otherwise, if an outlet is the table's asset or an asset alias, the extra of its event
    contains the table and both versions.

    Args:
        table: table identifier, ``database$table``. Templated.
        columns: the columns. Templated.
        drop_indices: whether indices on the columns may be dropped with them; otherwise the task fails.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "columns", *LanceOperator.template_fields)
    template_fields_renderers = {"columns": "json"}

    def __init__(self, *, columns: Sequence[str], drop_indices: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.columns = columns
        self.drop_indices = drop_indices

    def _change(self, namespace: LanceNamespace, table: TableId) -> SchemaResult:
        from airflow_provider_lancens.spark.schema import drop_columns

        columns = parse_list("columns", self.columns, "a list of columns")
        return drop_columns(namespace, table, columns, drop_indices=self.drop_indices)
