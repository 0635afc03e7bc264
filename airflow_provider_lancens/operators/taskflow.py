"""Spark and Lance tables in TaskFlow tasks: pinned reads and exactly-once writes in any `@task`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.assets.table import WRITES_XCOM, LanceTable, emit_asset_event, emit_no_event
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, airflow_errors
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.hooks.template_args import not_empty, parse_mapping, parse_table
from airflow_provider_lancens.operators._spark.counted_writes import CountedWrites
from airflow_provider_lancens.operators._spark.pinned_inputs import ChangedRows, PinnedTable
from airflow_provider_lancens.operators._spark.spark_operator import CancellableSparkWork, killable
from airflow_provider_lancens.operators._spark.write_naming import (
    default_key,
    execution_id_of,
    existing_key_policy,
    key_of_moved_task,
)
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION

if TYPE_CHECKING:
    from datetime import datetime

    from airflow.sdk import Context

    from airflow_provider_lancens.spark.changes.read_changes import IfUnavailable
    from airflow_provider_lancens.spark.options import (
        Mode,
        OnExistingKey,
        SchemaMode,
        WhenMatched,
        WriteOptions,
    )


class SparkLake:
    """A Spark session and the Lance tables of a connection; created by `lance_spark`."""

    def __init__(self, spark: Any, hook: LanceHook, context: Context) -> None:
        self.spark = spark
        self._hook = hook
        self._context = context
        self._read: dict[str, list[Any]] = {}
        self._written: list[dict[str, Any]] = []
        self._counted: dict[str, CountedWrites] = {}
        self._keys: Counter[tuple[str, str]] = Counter()

    @not_empty("version", "as_of", "tag", "filter")
    def read(
        self,
        table: str | Mapping[str, Any],
        version: int | None = None,
        *,
        as_of: datetime | None = None,
        tag: str | None = None,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 what Lance's own readers call it
        blobs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Read a table at exactly one version as a DataFrame.

        Args:
            table: its identifier, ``database$table``, or a mapping with table and version: the XCom of a
                sensor or of an ingestion.
            version: the version; by default the one given by `table`, else the current newest one. None is
                refused if it is passed, since it is what a task has returned that was marked as success; so
                it is for the arguments below.
            as_of: reads the version that was the newest at this time, such as the end of the data interval.
            tag: reads the version with this tag.
            columns: the columns to read; by default all.
            filter: a condition, see docs/conditions.md, evaluated on the executors.
            blobs: the blob columns to read the bytes of, with ``"all"`` or a range, such as
                ``{"image": "all", "video": (0, 65536)}``; others are read as references.

        Raises:
            AirflowFailException: an argument is invalid, or there is no such table, version, tag or column.
        """
        from airflow_provider_lancens.spark.read import read_table
        from airflow_provider_lancens.spark.table.resolved_table import resolved_table
        from airflow_provider_lancens.spark.table.version_lookup import WantedVersion

        if isinstance(table, Mapping):
            pinned = PinnedTable.parse("table", table)
            identifier, version = pinned.table, pinned.version if version is None else version
        else:
            identifier = parse_table(table)
        name = str(identifier)
        with airflow_errors(f"reading table {name!r} through connection {self._hook.lance_conn_id!r}"):
            namespace = self._hook.get_conn()
            with resolved_table(namespace, identifier) as target:
                version = WantedVersion(version, as_of, tag).find(target)
            self._read.setdefault(name, []).append(version)
            return read_table(
                self.spark,
                namespace,
                identifier,
                version=version,
                columns=columns,
                filter=filter,
                blobs=blobs,
            )

    @not_empty("filter")
    def read_changes(
        self,
        changes: Mapping[str, Any],
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 what Lance's own readers call it
        if_unavailable: IfUnavailable = "fail",
    ) -> Any:
        """Read the rows that changed between two versions as a DataFrame.

        Args:
            changes: a mapping with ``table``, ``previous_version`` and ``version``: the XCom of a sensor or
                of `LanceFindChangesOperator`.
            columns: the columns to read; by default all. Two that say what happened follow them.
            filter: a condition, see docs/conditions.md, evaluated on the executors.
            if_unavailable: what to do if the changes are unknown: ``fail``, or ``read_all``, which returns
                all rows of ``version`` with the type ``snapshot``.

        Raises:
            AirflowFailException: an argument is invalid, there is no such table or version, or the changes
                are unknown.
        """
        changed = ChangedRows.parse("changes", changes)
        name = str(changed.pinned.table)
        attempt = f"reading changes of table {name!r} through connection {self._hook.lance_conn_id!r}"
        with airflow_errors(attempt):
            self._read.setdefault(name, []).append(changed.identity)
            return changed.read(
                self.spark,
                self._hook.get_conn(),
                columns=columns,
                filter=filter,
                if_unavailable=if_unavailable,
            )

    @not_empty("where", "delete_when", "key", "fingerprint")
    def write(
        self,
        df: Any,
        table: str,
        *,
        mode: Mode = "append",
        on: Sequence[str] | None = None,
        schema_mode: SchemaMode = "strict",
        where: str | None = None,
        when_matched: WhenMatched = "update",
        sequence_by: str | None = None,
        delete_when: str | None = None,
        helper_columns: Sequence[str] | None = None,
        update_columns: Sequence[str] | None = None,
        stage: bool = False,
        key: str | None = None,
        fingerprint: str | None = None,
        on_existing_key: OnExistingKey = "skip",
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write a DataFrame into a declared table, exactly once, and update an outlet that is its asset.

        Args:
            df: the rows.
            table: table identifier, ``database$table``.
            mode: ``append``, ``overwrite``, ``create`` or ``upsert``.
            on: the key columns of an ``upsert``.
            schema_mode: what to do if the rows have other columns than the table: ``strict`` refuses them,
                ``merge`` adds and widens columns of the table, ``overwrite`` lets an ``overwrite`` replace
                them, as described for `airflow_provider_lancens.spark.write_table`.
            where: a condition in SQL, such as ``day = '2026-11-01'``: an ``overwrite`` replaces only
                the rows that match it, and all new rows must match it.
            when_matched: what an ``upsert`` does with a row of the table that has the key of a new one:
                ``update`` replaces it, ``keep`` leaves it and doesn't write the new one.
            sequence_by: a column by which an ``upsert`` orders the rows of a key, such as a time: of several
                new rows the last is written, and only if it is later than that of the table.
            delete_when: a condition on the new rows, such as ``op = 'D'``: an ``upsert``
                deletes the rows of the table that have the key of such a row, rather than writing it.
            helper_columns: columns of the new rows that only `delete_when` needs, such as ``["op"]``, and
                that are never written. Without it, columns that `delete_when` names and the table doesn't
                have aren't written; the first write of a table writes all.
            update_columns: an ``upsert`` updates only these columns of rows that exist. The new rows may
                lack the others, which are then null in rows that are added.
            stage: True stages the rows: `version` is then one that no reader finds but by its number,
                until `LancePublishOperator` publishes or `LanceDiscardOperator` discards it.
            key: identifies this write; not None or empty if it is passed, as `where`,
                `delete_when` and `fingerprint`. By default the task, its data interval or run, the table, and
                the number of the task's write to it. In a loop, set what identifies each write: with the
                default, a cleared task whose loop has other items than before is refused.
            fingerprint: identifies the content written under the key; with the default key, the default is
                the versions that were read before, and the plan of `df`, if it says which rows it yields.
            on_existing_key: what to do if the key was committed before: ``skip`` (and fail on another
                fingerprint), ``replace_if_changed``, ``replace`` or ``write_again``, as described for
                `airflow_provider_lancens.spark.write_table`. ``lance_on_existing_key`` in the run's
                configuration overrides it, for all tasks or by task id.
            options: fields of `airflow_provider_lancens.spark.WriteOptions`.

        Returns:
            The same dictionary as the XCom of `LanceAppendOperator`, which `read` accepts as `table`.

        Raises:
            AirflowFailException: an argument is invalid, or the rows don't match the table.
            LanceRetryableError: the metastore or the storage is unavailable, or the commit conflicted.
        """
        from airflow_provider_lancens.operators._spark.result_log import log_result, written_again
        from airflow_provider_lancens.spark.options import WriteIdentity, WriteRequest, change_of
        from airflow_provider_lancens.spark.table.resolved_table import resolved_table
        from airflow_provider_lancens.spark.write.pipeline import write_rows
        from airflow_provider_lancens.spark.write.row_sources import FrameRows
        from airflow_provider_lancens.spark.write.write_context import WriteContext

        identifier = parse_table(table)
        name, layout = str(identifier), _write_options(options)
        counted = None
        if not key:
            counted = self._counted.setdefault(name, CountedWrites(name))
            key = counted.next_key(self._task_key(df))
            fingerprint = counted.fingerprint(fingerprint, self._read, where, df)
        with airflow_errors(f"writing table {name!r} through connection {self._hook.lance_conn_id!r}"):
            policy = existing_key_policy(on_existing_key, self._context)
            execution_id = self._execution_id(name, key)
            change = change_of(
                mode,
                on=on,
                schema_mode=schema_mode,
                where=where,
                when_matched=when_matched,
                sequence_by=sequence_by,
                delete_when=delete_when,
                helper_columns=helper_columns,
                update_columns=update_columns,
                stage=stage,
            )
            identity = WriteIdentity(key, fingerprint, policy, execution_id)
            with resolved_table(self._hook.get_conn(), identifier) as target:
                if counted is not None:
                    moved = key_of_moved_task(key, self._context, target)
                    identity = replace(identity, key=moved)
                request = WriteRequest(change, identity, layout)
                begin = WriteContext.begin if counted is None else counted.begin
                result = write_rows(FrameRows(df), begin(target, request))
        if counted is not None:
            counted.made += 1
        self._keys[name, key] += 1
        written = LanceTable.of(self._hook.lance_conn_id, identifier)
        outlets = self._context["task"].outlets
        if result.is_outdated:
            emit_no_event(self._context, self._context["task"], written)
        elif result.published:
            version, previous = result.version, result.previous_version
            emit_asset_event(self._context, outlets, written, version, previous, result.changes)
        again = written_again(self._context["task"].task_id, in_addition=mode == "upsert")
        log_result(self._hook.lance_conn_id, result, again)
        answer = result.as_dict()
        self._written.append(answer)
        self._context["ti"].xcom_push(WRITES_XCOM, self._written)  # a sensor downstream looks there
        return answer

    def _task_key(self, df: Any) -> str:
        """Return the task's part of a default key; if nobody tells its mapped item, the plan of its rows."""
        from airflow_provider_lancens.operators._spark.mapped_item import ItemNotToldError
        from airflow_provider_lancens.spark.write.plan_digest import plan_digest

        try:
            return default_key(self._context)
        except ItemNotToldError:
            if (plan := plan_digest(df)) is None:
                raise
            return default_key(self._context, item=plan[:16])

    def _execution_id(self, table: str, key: str) -> str:
        """Return what a write shares with the same call in other tries, and no other call of this try."""
        number = self._keys[table, key]
        return execution_id_of(self._context) + (f"#{number + 1}" if number else "")


@contextmanager
def lance_spark(
    *,
    lance_conn_id: str = DEFAULT_CONNECTION,
    spark_conn_id: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
) -> Iterator[SparkLake]:
    """Open Spark and the Lance tables of a connection for the running task; Spark ends with the task.

    It also ends if the task is killed. An existing session, such as that of ``@task.pyspark``, is used and
    not stopped.

    Args:
        lance_conn_id: a connection of any of this provider's types.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None runs it in
            the task's process.
        spark_conf: Spark configuration, which overrides the connection's.

    Raises:
        LanceRetryableError: the task was killed.
        AirflowFailException: a connection is invalid, or runs the driver on the cluster.
    """
    from airflow.sdk import get_current_context

    from airflow_provider_lancens.hooks.spark_connection import SparkDeployment

    context = get_current_context()
    deployment = SparkDeployment.of(spark_conn_id, spark_conf)
    deployment.check_driver_here()
    name = f"{context['ti'].dag_id}.{context['ti'].task_id}"
    with (
        closing(LanceHook.for_connection(lance_conn_id)) as hook,
        _ends_with(context["task"]) as work,
        work.session(name, deployment.conf) as spark,
    ):
        yield SparkLake(spark, hook, context)


@contextmanager
def _ends_with(task: Any) -> Iterator[CancellableSparkWork]:
    """Provide Spark work that is stopped when the task is killed, with any operator."""
    with killable() as work:
        outer = vars(task).get("on_kill")
        task.on_kill = work.kill
        try:
            yield work
        finally:
            del task.on_kill
            if outer is not None:  # that of a block around this one
                task.on_kill = outer


def _write_options(options: Mapping[str, Any] | None) -> WriteOptions:
    from airflow_provider_lancens.spark.options import WriteOptions

    try:
        return WriteOptions(**parse_mapping("options", options))
    except (TypeError, ValueError) as error:
        raise AirflowFailException(f"options: {error}") from error
