"""Deleting rows of a table by a condition, once. One process does it, no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.arguments import parse_table, parse_text
from airflow_provider_lancens.links import LanceGlueTableLink
from airflow_provider_lancens.operators.base import LanceOperator
from airflow_provider_lancens.operators.naming import idempotency_key

if TYPE_CHECKING:
    from airflow.sdk import Context


class LanceDeleteRowsOperator(LanceOperator):
    """Delete the rows of a table that meet a condition, exactly once.

    The rows are marked as deleted in one commit, also where none meets the condition: a task that is
    retried or cleared finds that commit, and deletes nothing of what came since. Their bytes stay until a
    compaction and a clean-up.

    Its XCom is ``{"table": str, "version": int, "previous_version": int | None, "rows": int,
    "files": int, "bytes": int, "seconds": float, "committed": bool}``: `rows` that were deleted, in how many
    fragments; no bytes are written. ``committed`` is false where an earlier run made the commit that it
    describes. An outlet that is the table's asset, or an alias, carries table and versions as its event's
    extra.

    Args:
        table: its identifier, ``database$table``. Templated.
        where: a condition in Lance's SQL, such as ``month = 3``. Under a key that was committed with another
            condition, the task fails for good. Templated.
        idempotency_key: what this deletion is. By default the DAG, the task, the map index and the data
            interval, or the run where there is none. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "where", "idempotency_key", *LanceOperator.template_fields)
    template_fields_renderers = {"where": "sql"}
    operator_extra_links = (LanceGlueTableLink(),)

    def __init__(self, *, table: str, where: str, idempotency_key: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.where = where
        self.idempotency_key = idempotency_key

    def execute(self, context: Context) -> dict[str, Any]:
        """Find the commit of an earlier run, or make it.

        Raises:
            AirflowFailException: there is no such table, the condition can't be understood, or the key was
                committed with another.
            LanceRetryableError: the metastore or the storage didn't answer, or others were always faster.
        """
        from airflow_provider_lancens.spark.delete import delete_rows

        table = str(parse_table(self.table))
        where = parse_text(self.where) or ""
        key = idempotency_key(self.idempotency_key, context)
        self.log.info("Deleting from table %s where %s, under key %r", table, where, key)
        with self.connected(f"deleting rows of table {table!r}") as namespace:
            result = delete_rows(namespace, table, where, idempotency_key=key)
        self.note_version(context, table, result.version, result.previous_version)
        return result.as_dict()
