"""Operator that writes the available rows of a stream into a table, each epoch once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import check_mapping, parse_table, parse_text
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.operators._spark.write_arguments import write_request
from airflow_provider_lancens.spark.options import SchemaMode, WhenMatched

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.hooks.lance_hook import LanceHook


class LanceStreamOperator(LanceSparkOperator):
    """Write the available rows of a streaming DataFrame into a declared table (``availableNow``).

    Spark keeps the query's progress in the checkpoint, from which each run resumes. Each epoch (micro-batch)
    is committed under a key of the query and the epoch's number: a task that is killed, retried, cleared or
    run twice at the same time writes each row once.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int | None, "previous_version":
    int | None, "epochs": int, "inserted": int, "updated": int, "deleted": int, "files": int, "bytes": int,
    "seconds": float, "reason": str, "location": str | None}``: ``previous_version`` is the version before the
    first epoch of this try. If there were rows and an outlet is the table's asset or an asset alias, the
    extra of its event contains the table, both versions and the rows.

    Args:
        table: table identifier, ``database$table``. Templated.
        source: a function, called as ``source(spark, **op_kwargs)``, that returns a streaming DataFrame, made
            by ``spark.readStream``. With PySpark 4.1 or newer, ``spark.readStream.format("lancens")`` reads
            tables of the connection.
        checkpoint: the folder, on a file system that Spark can write to, where Spark keeps the query's
            progress. It belongs to this task alone. Templated.
        op_kwargs: further arguments of `source`. Templated.
        on: the key columns of an upsert, which replaces rows by key; None appends.
        schema_mode: what to do if the rows have other columns than the table: ``strict`` refuses them,
            ``merge`` adds and widens columns of the table.
        when_matched: what an ``upsert`` does with a row of the table that has the key of a new row:
            ``update`` replaces it, ``keep`` leaves it and doesn't write the new row.
        sequence_by: a column by which an ``upsert`` orders the rows of a key, such as a time; without it, the
            keys of an epoch must be unique.
        delete_when: a condition on the new rows, such as ``op = 'D'``: an ``upsert`` deletes
            the rows of the table that have the key of such a row, rather than writing it.
        helper_columns: columns of the new rows that only `delete_when` needs, such as ``["op"]``, and that
            are never written. Without it, columns that `delete_when` names and the table doesn't have aren't
            written; the first write of a table writes all.
        update_columns: an ``upsert`` updates only these columns of rows that exist.
        options: fields of `airflow_provider_lancens.spark.TableLayout`, such as ``max_rows_per_file``.
        spark_conn_id: where Spark runs: a connection of type ``spark``; None runs it in the task's process.
            Templated.
        spark_conf: Spark configuration, which overrides the connection's; by default ``local[2]`` without a
            web UI, in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "checkpoint",
        "op_kwargs",
        *LanceSparkOperator.template_fields,
    )
    template_fields_renderers = {"op_kwargs": "json", **LanceSparkOperator.template_fields_renderers}
    checked_if_mapped = ("on", "sequence_by", "delete_when", "update_columns")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        source: Callable[..., Any],
        checkpoint: str,
        op_kwargs: Mapping[str, Any] | None = None,
        on: Sequence[str] | None = None,
        schema_mode: SchemaMode = "strict",
        when_matched: WhenMatched = "update",
        sequence_by: str | None = None,
        delete_when: str | None = None,
        helper_columns: Sequence[str] | None = None,
        update_columns: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not callable(source):
            raise TypeError(f"source: expected a function, got a value of type {type(source).__name__}")
        self.table = table
        self.source = source
        self.checkpoint = checkpoint
        self.op_kwargs = op_kwargs or {}
        self._request = write_request(
            check_mapping("options", options),
            "append" if on is None else "upsert",
            on=on,
            schema_mode=schema_mode,
            when_matched=when_matched,
            sequence_by=sequence_by,
            delete_when=delete_when,
            helper_columns=helper_columns,
            update_columns=update_columns,
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the query until it has written the rows that were available when it began.

        Raises:
            AirflowFailException: an argument is invalid, the rows don't match the table, or the checkpoint is
                older than the table.
            LanceRetryableError: the metastore or the storage is unavailable, a commit conflicted, or the task
                was killed.
        """
        from airflow_provider_lancens.lineage.task_lineage import TableWrite
        from airflow_provider_lancens.operators._spark.ingest_sources import FunctionIngestSource
        from airflow_provider_lancens.operators._spark.result_log import log_result
        from airflow_provider_lancens.spark.streaming.write_available import write_available

        table, checkpoint = parse_table(self.table), parse_text(self.checkpoint)
        if checkpoint is None:
            raise AirflowFailException("checkpoint: expected the path of a folder, got blank text")
        source = FunctionIngestSource.parse(self.source, {}, self.op_kwargs)
        with (
            self.connected(f"streaming into table {str(table)!r}") as namespace,
            self.spark(self.spark_deployment()) as spark,
        ):
            _register_data_source(spark, self.hook)
            frame, _ = source.returned(spark, self.hook)
            result = write_available(frame, namespace, table, self._request, checkpoint=checkpoint)
            self.note_lineage(
                namespace,
                TableWrite.of(result, columns=self._request.upsert and self._request.upsert.update_columns),
            )
        self.emit_asset_event(context, result)
        log_result(self.lance_conn_id, result)
        return result.as_dict()


def _register_data_source(spark: Any, hook: LanceHook) -> None:
    """Register ``format("lancens")`` for the tables of a connection, where PySpark can have it."""
    from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

    try:
        from airflow_provider_lancens.spark.datasource import lance_data_source
    except ImportError:  # PySpark is older than 4.1
        return
    spec = NamespaceSpec(hook.namespace_impl, hook.namespace_properties())
    spark.dataSource.register(lance_data_source(spec))
