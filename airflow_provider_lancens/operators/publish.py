"""Operators on staged versions: publish one as the table's next version, or discard it with its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import check_choice, check_column_name
from airflow_provider_lancens.identifiers import staged_name
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import (
    SKIP,
    SKIP_OR_FAIL,
    IfMissing,
    LanceOperator,
    table_result,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.spark.results import Outcome


class LancePublishOperator(LanceOperator):
    """Publish a staged version as the table's next version, exactly once, without copying data.

    Commits of others since it was staged are kept: an append and an upsert are applied on top of them; an
    overwrite is refused if it would replace rows that others wrote meanwhile. A task that is retried or
    cleared finds its commit and commits nothing.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int |
    None, "inserted": int, "updated": int, "deleted": int, "files": int, "bytes": int, "key": str | None,
    "staged_version": None, "seconds": float, "reason": str, "location": str | None}``. ``outcome`` is
    ``found`` if an earlier try published it, ``skipped`` if an earlier run did, and ``unchanged`` if the
    ingestion had no rows. If an outlet is the table's asset or an asset alias, the extra of its event
    contains the table, both versions and the rows; a skipped publication after which others have committed
    emits no event.

    Args:
        staged: the staged version: the output of an ingestion with ``stage=True``, or a mapping with its
            ``table`` and ``staged_version``. Templated.
        event_partitions: a column, such as a day, whose values in the rows that were written, replaced or
            deleted are the partitions of the asset event, see `LanceAppendOperator`. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("staged", "event_partitions", *LanceOperator.template_fields)
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, staged: Any, event_partitions: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.staged = staged
        self.event_partitions = check_column_name("event_partitions", event_partitions)

    def execute(self, context: Context) -> dict[str, Any]:
        """Publish the version, or return the commit by which an earlier run did.

        Raises:
            AirflowFailException: there is no such table or version: it was discarded, or has expired; or it
                conflicts with commits of others since it was staged.
            LanceRetryableError: every attempt conflicted with a commit of others, or the metastore or the
                storage is unavailable.
        """
        from airflow_provider_lancens.lineage.task_lineage import TableWrite
        from airflow_provider_lancens.operators._spark.idempotency import is_first_try
        from airflow_provider_lancens.operators._spark.partitions import (
            changed_partitions,
            check_partition_column,
        )
        from airflow_provider_lancens.operators._spark.pinned_inputs import PinnedTable
        from airflow_provider_lancens.operators._spark.result_log import log_result
        from airflow_provider_lancens.spark.publish import staged_nothing

        staged = PinnedTable.parse("staged", self.staged)
        is_empty = staged_nothing(staged)
        with (
            self.connected(f"publishing a version of table {str(staged.table)!r}") as namespace,
            self.opened(context) as lake,
        ):
            if not is_empty:
                check_partition_column(namespace, staged.table, staged.version, self.event_partitions)
            result = lake.table(staged.table).publish(staged.as_result())
            if result.outcome == "found" and is_first_try(context):
                result = replace(result, outcome="skipped")
            # Its rows were written, and counted, when they were staged.
            self.note_lineage(namespace, TableWrite.of(result, counts=None, source_version=staged.version))
            partitions = changed_partitions(
                namespace, result, self.event_partitions, is_own_version=not is_empty
            )
        self.emit_asset_event(context, result, partitions=partitions)
        log_result(self.lance_conn_id, result)
        return result.as_dict()


class LanceDiscardOperator(LanceOperator):
    """Discard a version that an ingestion staged, with the files that were written for it.

    The rows of a version that was published remain. A task that is retried or cleared succeeds.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "staged_version": str | None}``;
    ``outcome`` is ``unchanged`` if there was no such version, or the ingestion had no rows and staged none.

    Args:
        staged: the staged version: the output of an ingestion with ``stage=True``, or a mapping with its
            ``table`` and ``staged_version``. Templated.
        if_missing: if there is no such version, ``fail`` fails the task without retries, unless it is a later
            try, since an earlier one has then removed it; ``skip`` lets it succeed.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("staged", *LanceOperator.template_fields)
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, staged: Any, if_missing: IfMissing = "fail", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.staged = staged
        self.if_missing = check_choice("if_missing", if_missing, SKIP_OR_FAIL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Discard the version.

        Raises:
            AirflowFailException: there is no such table, the version isn't a staged one, or it doesn't exist
                and ``if_missing`` is ``fail``.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        from airflow_provider_lancens.operators._spark.pinned_inputs import PinnedTable
        from airflow_provider_lancens.spark.publish import staged_nothing

        staged = PinnedTable.parse("staged", self.staged)
        if staged_nothing(staged):
            self.log.info(
                "Table %s: there were no rows to stage, and so there is nothing to discard", staged.table
            )
            return {**table_result(staged.table, "discard", "unchanged"), "staged_version": None}
        with self.opened(context) as lake:
            discarded = lake.table(staged.table).discard(staged.as_result(), if_missing=SKIP)
        if not discarded:
            what = f"staged version {staged.version} of table {str(staged.table)!r}"
            self.accept_missing(what, self.if_missing, context)
        outcome: Outcome = "done" if discarded else "unchanged"
        result = table_result(staged.table, "discard", outcome)
        return {**result, "staged_version": staged_name(staged.version)}
