"""Operator that deletes rows of a table by a condition, exactly once, in the task's process without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import (
    check_choice,
    check_flag,
    parse_condition,
    parse_table,
)
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators._spark.idempotency import identity_in
from airflow_provider_lancens.operators.lance_operator import LanceOperator
from airflow_provider_lancens.spark.options import ON_EXISTING_KEY, OnExistingKey

if TYPE_CHECKING:
    from airflow.sdk import Context


class LanceDeleteOperator(LanceOperator):
    """Delete the rows of a table that match a condition, exactly once.

    The rows are marked as deleted in one commit, which is made even if no row matches: a task that is
    retried finds that commit and doesn't delete rows added since; a cleared task deletes the rows that match
    then. Their bytes remain on the storage until a compaction and a clean-up.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int |
    None, "inserted": int, "updated": int, "deleted": int, "files": int, "bytes": int, "key": str | None,
    "staged_version": None, "seconds": float, "reason": str, "location": str | None}``: ``deleted`` counts the
    deleted rows, ``files`` the fragments that contained them; no bytes are written. ``outcome`` is ``found``
    if an earlier try of the same execution made the commit, ``skipped`` if another execution did, and
    ``planned`` with `dry_run`. If an outlet is the table's asset or an asset alias, the extra of its event
    contains the table, both versions, the operation and the rows.

    Args:
        table: table identifier, ``database$table``. Templated.
        where: a condition such as ``month = 3``, see docs/conditions.md. Templated.
        dry_run: only count the rows; there is no commit and no asset event.
        key: identifies this deletion. By default it consists of the DAG, the task, the item of a mapped task,
            and the data interval, or the run if there is no interval. Templated.
        on_existing_key: what to do if another execution, such as one before a clear, has committed under the
            key: ``redo`` and ``write_again`` delete the rows that match now, ``redo_if_changed`` only if the
            condition differs, ``skip`` deletes nothing. ``lance_on_existing_key`` in the run's
            configuration overrides it, for all tasks or by task id.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "where", "key", *LanceOperator.template_fields)
    template_fields_renderers = {"where": "sql"}
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        where: str,
        dry_run: bool = False,
        key: str | None = None,
        on_existing_key: OnExistingKey = "redo",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("on_existing_key", on_existing_key, ON_EXISTING_KEY)
        self.table = table
        self.where = where
        self.is_dry_run = check_flag("dry_run", dry_run)  # `dry_run` is a method of every operator
        self.key = key
        self.on_existing_key: OnExistingKey = on_existing_key

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the commit of an earlier run, or delete the rows and commit.

        Raises:
            AirflowFailException: there is no such table, the condition is invalid, or the key was committed
                with another condition and `on_existing_key` is ``skip``.
            LanceRetryableError: the metastore or the storage is unavailable, or every commit attempt
                conflicted.
        """
        from airflow_provider_lancens.lineage.task_lineage import TableWrite
        from airflow_provider_lancens.operators._spark.result_log import log_result, written_again

        table, where = parse_table(self.table), parse_condition("where", self.where) or ""
        with self.opened(context) as lake:
            identity = identity_in(lake, table, self.key, self.on_existing_key, context)
            self.log.info("Deleting from table %s where %s, under key %r", table, where, identity.key)
            result = lake.table(table).delete(where, dry_run=self.is_dry_run, key=identity)
            if not self.is_dry_run:
                deleted = result.deleted if result.is_done else None
                self.note_lineage(lake.namespace, TableWrite.of(result, counts=None, deleted_rows=deleted))
        self.emit_asset_event(context, result)
        if result.outcome == "skipped":
            log_result(self.lance_conn_id, result, written_again(self.task_id))
        return result.as_dict()
