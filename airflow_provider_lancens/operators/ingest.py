"""Operators that append, overwrite and upsert a PySpark DataFrame or files, exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_lancens.hooks.template_args import (
    check_column_name,
    check_condition,
    check_flag,
    check_mapping,
    is_template,
    parse_table,
    parse_text,
)
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators._spark.idempotency import (
    execution_id_of,
    existing_key_policy,
    key_of_moved_task,
    write_key,
)
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.operators._spark.write_arguments import write_request
from airflow_provider_lancens.spark.options import (
    Change,
    Mode,
    OnExistingKey,
    Overwrite,
    SchemaMode,
    Upsert,
    WhenMatched,
    WriteIdentity,
    WriteRequest,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.lineage.task_lineage import DerivedColumn
    from airflow_provider_lancens.operators._spark.candidate_writes import CandidateWrites
    from airflow_provider_lancens.operators._spark.ingest_sources import IngestSource, Source
    from airflow_provider_lancens.spark.file_source import FileSource
    from airflow_provider_lancens.spark.function_inputs import Reading
    from airflow_provider_lancens.spark.results import WriteResult
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


class LanceWriteOperator(LanceSparkOperator):
    """Base class of operators that write the DataFrame of a PySpark function, or files, exactly once.

    The task may be retried, or run twice at the same time: its rows are committed once, and a later try
    returns that commit without starting Spark. A cleared task writes again, in place of its earlier rows: see
    `on_existing_key`. An existing Spark session is used and not stopped. A session that the task opens ends
    with it, even if the task is killed, and so does a driver that runs on a cluster. If the worker of such a
    driver is lost, the retry waits for that driver rather than submitting another one.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int | None, "previous_version":
    int | None, "inserted": int, "updated": int, "deleted": int, "files": int, "bytes": int, "key": str |
    None, "staged_version": str | None, "seconds": float, "reason": str, "location": str | None}``, and can be
    passed as an input of another such task. ``outcome`` is ``done``; ``staged``, and then ``staged_version``
    names the version, and ``version`` is None; ``unchanged`` if there were no rows to append; ``found`` if an
    earlier try committed or staged the rows; or ``skipped`` if `on_existing_key` says that nothing is
    written, since another run, or this task before it was cleared, has committed under the key: then a
    warning says so, and how to write it again. If an outlet is the table's asset or an asset alias, the extra
    of its event contains the table, both versions, the operation and the rows; a staged version has none, and
    a skipped write after which others have committed emits no event.

    Args:
        table: table identifier, ``database$table``. Templated.
        source: a function, called as ``source(spark, **inputs, **op_kwargs)``, that returns the rows to
            write: a DataFrame, files as an `airflow_provider_lancens.spark.FileSource`, or rows in memory of
            Arrow, pandas or Polars. Or files that executors read directly: a ``FileSource`` or a
            mapping of its fields, templated, without ``storage_options``, which come from the connection.
        inputs: tables that `source` reads, by argument name: ``{"table": ..., "version": ...}``, such as the
            XCom of a sensor or of another write. Each is passed as a `airflow_provider_lancens.spark.Table`,
            opened at exactly that version: ``orders.read(columns=...)``, ``orders.dataset()``, and
            ``orders.changes().read()`` for the rows that changed after its ``previous_version``. An
            identifier alone is read at the newest version when the task begins. Templated.
        op_kwargs: further arguments of `source`; the output of a mapped task is passed as a list. Templated.
        key: identifies this write. By default it consists of the DAG, the task, the item of a mapped task,
            and the data interval, or the run if there is no interval; if `source` reads the changes of an
            input, also of the version where these begin. Templated.
        fingerprint: identifies the content written under the key. With the default key, the default is the
            pinned inputs and `op_kwargs`, or the files' paths, sizes and times. With an explicit key
            there is no default, and a write without a fingerprint matches any. With the result of
            `fingerprint_files`, files that have changed since are refused. Templated.
        on_existing_key: what to do if another execution, such as one before a clear, has committed under the
            key: ``redo`` writes in place of its rows, ``redo_if_changed`` does so if the fingerprint differs,
            ``skip`` writes nothing (and fails if the fingerprint differs), ``write_again`` writes in
            addition, as described for `airflow_provider_lancens.spark.Table`.
            ``lance_on_existing_key`` in the run's configuration overrides it, for all tasks or by task id.
        event_partitions: a column, such as a day, whose values in the rows that were written, replaced or
            deleted are the partitions of the asset event: as its partition keys on Airflow 3.3 or newer, one
            event for each, and in its extra. At most 1,000 values. With ``stage=True``, pass it to
            `LancePublishOperator` instead. Templated.
        options: fields of `airflow_provider_lancens.spark.TableLayout`, such as ``max_rows_per_file``.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None runs it in
            the task's process. Templated.
        spark_conf: Spark configuration, which overrides the connection's; by default ``local[2]`` without a
            web UI, in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "files",
        "inputs",
        "op_kwargs",
        "key",
        "fingerprint",
        "event_partitions",
        *LanceSparkOperator.template_fields,
    )
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())
    checked_by_key = ("files",)
    argument_names = {"files": "source"}
    template_fields_renderers = {
        "files": "json",
        "inputs": "json",
        "op_kwargs": "json",
        **LanceSparkOperator.template_fields_renderers,
    }

    _request: WriteRequest
    """The write, with placeholders for what is rendered later."""

    def __init__(
        self,
        *,
        table: str,
        source: Source | FileSource | Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        key: str | None = None,
        fingerprint: str | None = None,
        on_existing_key: OnExistingKey = "redo",
        event_partitions: str | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.source = source
        self.files = {} if callable(source) else _template_of(source)
        if self.files and (inputs or op_kwargs):
            raise ValueError(
                "inputs, op_kwargs: not allowed with files as source; they are the arguments of a function"
            )
        self.inputs = inputs or {}
        self.op_kwargs = op_kwargs or {}
        self.key = key
        self.fingerprint = fingerprint
        self.event_partitions = check_column_name("event_partitions", event_partitions)
        self._on_existing_key = on_existing_key
        self._layout = check_mapping("options", options)

    def describe_change(self, mode: Mode, **arguments: Any) -> None:
        """Check and keep the arguments of the subclass, when the DAG is parsed.

        Args:
            mode: what the write does.
            arguments: the fields of its change.

        Raises:
            ValueError: an argument is invalid, or contradicts another one; the message names it.
        """
        self._request = write_request(self._layout, mode, self._on_existing_key, **arguments)
        if self.event_partitions and self._request.change.stage:
            raise ValueError("event_partitions: not allowed with stage=True; pass it to LancePublishOperator")

    def rendered_change(self) -> Change:
        """Return what the write does, with the templates rendered."""
        return self._request.change

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the commit of an earlier run, or write and commit the rows.

        Raises:
            AirflowFailException: an argument is invalid, or the rows don't match the table.
            LanceRetryableError: the metastore or the storage is unavailable, or the commit conflicted.
        """
        from airflow_provider_lancens.lineage.task_lineage import TableWrite
        from airflow_provider_lancens.operators._spark.candidate_writes import CandidateWrites
        from airflow_provider_lancens.operators._spark.partitions import changed_partitions
        from airflow_provider_lancens.operators._spark.result_log import log_result, written_again
        from airflow_provider_lancens.spark.table.resolved_table import resolved_table

        table = parse_table(self.table)
        source = self._parsed_source()
        key = write_key(self.key, context)
        derived: Mapping[str, DerivedColumn] = {}
        self.log.info("Ingesting into table %s (%s) under key %r", table, self._request.change.MODE, key)
        with self.connected(f"ingesting into table {str(table)!r}") as namespace:
            source = source.pinned(self.hook)
            with resolved_table(namespace, table) as target:
                writes = CandidateWrites.begin(target, self._requests(key, source, target, context))
            if (made := writes.find_earlier_commit()) is not None:
                result, reading = made
            else:
                result, reading, derived = self._written(source, writes, context)
            is_own = result.outcome != "unchanged"  # an unchanged result has another writer's version
            partitions = changed_partitions(namespace, result, self.event_partitions, is_own_version=is_own)
            wrote = TableWrite.of_request(result, self._rendered_request(), derived)
            self.note_lineage(namespace, wrote, source.reads(reading))
        self.emit_asset_event(context, result, partitions=partitions)
        again = written_again(self.task_id)
        log_result(self.lance_conn_id, result, again)
        return result.as_dict()

    def _rendered_request(self) -> WriteRequest:
        return replace(self._request, change=self.rendered_change())

    def _requests(
        self, key: str, source: IngestSource, target: ResolvedTable, context: Context
    ) -> dict[Reading, WriteRequest]:
        """Return the writes that this may be, by what the source reads."""
        from airflow_provider_lancens.spark.function_inputs import WHOLE

        fingerprint = parse_text(self.fingerprint)
        if fingerprint is not None:
            source.expect(fingerprint)
        policy = existing_key_policy(self._request.identity.on_existing_key, context)
        execution_id = execution_id_of(context)

        def request(key: str, fingerprint: str | None) -> WriteRequest:
            identity = WriteIdentity(key, fingerprint, policy, execution_id)
            return replace(self._rendered_request(), identity=identity)

        if self.key is not None:
            return {WHOLE: request(key, fingerprint)}
        return {
            reading: request(
                # A key for each range, so that rows of one range don't replace rows of another.
                key_of_moved_task("/".join([key, *source.ranges(reading)]), context, target),
                fingerprint or self._fingerprint_of(source, target, reading),
            )
            for reading in source.readings()
        }

    def _fingerprint_of(self, source: IngestSource, target: ResolvedTable, reading: Reading) -> str | None:
        from airflow_provider_lancens.operators._spark.fingerprints import conditions, fingerprint_of

        fingerprint = source.fingerprint(target, reading)
        given = conditions(self.rendered_change().conditions)
        if fingerprint is None or not given:
            return fingerprint
        return fingerprint_of({"source": fingerprint}, *given)

    def _parsed_source(self) -> IngestSource:
        from airflow_provider_lancens.operators._spark.ingest_sources import (
            FileIngestSource,
            FunctionIngestSource,
        )

        if callable(self.source):
            return FunctionIngestSource.parse(self.source, self.inputs, self.op_kwargs)
        return FileIngestSource.parse(self.files)

    def _written(
        self, source: IngestSource, writes: CandidateWrites, context: Context
    ) -> tuple[WriteResult, Reading, Mapping[str, DerivedColumn]]:
        from airflow_provider_lancens.operators._spark.partitions import check_written_column
        from airflow_provider_lancens.spark.write.write_rows import write_rows

        deployment, change = self.spark_deployment(), self.rendered_change()
        if deployment.deploy_mode == "cluster":
            from airflow_provider_lancens.operators._spark.submission import make_job

            check_written_column(writes.target, change, None, self.event_partitions)
            job = make_job(self.hook, source, writes.target.id, writes.requests)
            result = self.submit(deployment, job, context)
            return result, writes.inputs_of_result(result), {}
        with self.spark(deployment) as spark:
            rows, reading = source.rows(spark, self.hook, change)
            check_written_column(writes.target, change, rows, self.event_partitions)
            result = write_rows(rows, writes.of(reading))
            return result, reading, source.derived_columns(rows)


class LanceAppendOperator(LanceWriteOperator):
    """Add rows to a declared table, exactly once; the first write creates its data.

    Args:
        schema_mode: what to do if the rows have other columns than the table: ``strict`` refuses them,
            ``merge`` adds and widens columns of the table, as described for
            `airflow_provider_lancens.spark.Table`.
        stage: True stages the rows: they are in a version that readers find only by its name,
            ``staged_version``, until `LancePublishOperator` publishes or `LanceDiscardOperator` discards it.
        kwargs: see `LanceWriteOperator`.
    """

    def __init__(self, *, schema_mode: SchemaMode = "strict", stage: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.describe_change("append", schema_mode=schema_mode, stage=check_flag("stage", stage))


class LanceOverwriteOperator(LanceWriteOperator):
    """Replace all rows of a declared table, or the rows that match a condition, exactly once.

    Args:
        where: a condition in SQL, such as ``day = '{{ ds }}'``: only the rows that match it are replaced, and
            all new rows must match it, as described for `airflow_provider_lancens.spark.Table`; None
            replaces all rows. Templated.
        on: columns, such as ``["day"]``: the rows whose values in them occur in the new rows are replaced,
            and the others stay.
        schema_mode: what to do if the rows have other columns than the table: ``strict`` refuses them,
            ``merge`` adds and widens columns of the table, ``overwrite`` replaces the columns, without
            `where` and `on` alone.
        stage: True stages the rows, see `LanceAppendOperator`.
        kwargs: see `LanceWriteOperator`.
    """

    template_fields: Sequence[str] = (*LanceWriteOperator.template_fields, "where")
    template_fields_renderers = {**LanceWriteOperator.template_fields_renderers, "where": "sql"}
    checked_if_mapped = ("on",)

    def __init__(
        self,
        *,
        where: str | None = None,
        on: Sequence[str] | None = None,
        schema_mode: SchemaMode = "strict",
        stage: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.describe_change(
            "overwrite",
            where=_checked_later(where),
            on=on,
            schema_mode=schema_mode,
            stage=check_flag("stage", stage),
        )

    def rendered_change(self) -> Change:
        """See `LanceWriteOperator.rendered_change`."""
        where = check_condition("where", self.where)
        return replace(cast("Overwrite", self._request.change), where=where)


class LanceUpsertOperator(LanceWriteOperator):
    """Replace the rows of a declared table that have the keys of new rows, and add the others, exactly once.

    Args:
        on: the key columns.
        when_matched: what to do with a row of the table that has the key of a new row: ``update`` replaces
            it, ``keep`` leaves it and doesn't write the new row.
        sequence_by: a column that orders the rows of a key, such as a time: of several new rows the last is
            written, and only if it is later than the table's row.
        delete_when: a condition on the new rows, such as ``op = 'D'``: the rows of the table that have the
            key of such a row are deleted, rather than written. Templated.
        helper_columns: columns of the new rows that only `delete_when` needs, such as ``["op"]``, and that
            are never written. Without it, columns that `delete_when` names and the table doesn't have aren't
            written; the first write of a table writes all.
        update_columns: only these columns of rows that exist are updated. The new rows may lack the others,
            which are then null in rows that are added.
        schema_mode: see `LanceAppendOperator`.
        stage: True stages the rows, see `LanceAppendOperator`.
        kwargs: see `LanceWriteOperator`.
    """

    template_fields: Sequence[str] = (*LanceWriteOperator.template_fields, "delete_when")
    template_fields_renderers = {**LanceWriteOperator.template_fields_renderers, "delete_when": "sql"}
    checked_if_mapped = ("sequence_by", "update_columns")

    def __init__(
        self,
        *,
        on: Sequence[str],
        when_matched: WhenMatched = "update",
        sequence_by: str | None = None,
        delete_when: str | None = None,
        helper_columns: Sequence[str] | None = None,
        update_columns: Sequence[str] | None = None,
        schema_mode: SchemaMode = "strict",
        stage: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.delete_when = delete_when
        self.describe_change(
            "upsert",
            on=on,
            when_matched=when_matched,
            sequence_by=sequence_by,
            delete_when=_checked_later(delete_when),
            helper_columns=helper_columns,
            update_columns=update_columns,
            schema_mode=schema_mode,
            stage=check_flag("stage", stage),
        )
        if self.files and cast("Upsert", self._request.change).chooses_rows:
            raise ValueError(
                "when_matched, sequence_by, delete_when, update_columns: not allowed with files as source; "
                "Spark compares rows"
            )

    def rendered_change(self) -> Change:
        """See `LanceWriteOperator.rendered_change`."""
        delete_when = check_condition("delete_when", self.delete_when)
        return replace(cast("Upsert", self._request.change), delete_when=delete_when)


def _checked_later(condition: str | None) -> str | None:
    return "rendered later" if is_template(condition) else condition


def _template_of(files: FileSource | Mapping[str, Any]) -> dict[str, Any]:
    # Imported only for a DAG that has such a source: each imported module slows down parsing all other DAGs.
    from airflow_provider_lancens.operators._spark.ingest_sources import FileIngestSource

    return FileIngestSource.template_of(files)
