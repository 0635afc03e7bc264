"""Spark and Lance tables in TaskFlow tasks: reads at a version and exactly-once writes in any `@task`."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.assets.table import WRITES_XCOM, LanceTable, emit_asset_event, emit_no_event
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.hooks.template_args import check_condition, check_flag, refuse_empty
from airflow_provider_lancens.operators._spark.counted_writes import CountedWrites
from airflow_provider_lancens.operators._spark.idempotency import (
    default_key,
    execution_id_of,
    existing_key_policy,
    key_of_moved_task,
)
from airflow_provider_lancens.operators._spark.spark_operator import CancellableSparkWork, killable
from airflow_provider_lancens.provider_info import DEFAULT_CONNECTION
from airflow_provider_lancens.redaction import redact
from airflow_provider_lancens.spark.execution import Execution, numbered_execution_id

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.spark.execution import PendingWrite
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
    from airflow_provider_lancens.spark.options import WriteRequest
    from airflow_provider_lancens.spark.results import WriteResult
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.write_context import WriteContext

_log = logging.getLogger(__name__)
_LEFT = (
    "table %s: this task has made %d writes without a key, but an earlier try or execution made more. Unless "
    "a later block of the task makes them, what they wrote is still in the table: delete it if it is no "
    "longer wanted, or restore a version without it. Set the key of each write to what identifies its rows"
)
_CONDITIONS = ("filter", "where", "delete_when")
_MAY_NOT_BE_EMPTY = ("version", *_CONDITIONS, "on", "key")
"""Arguments of a table's methods that may be left out; an empty value is refused."""


_CONTEXT_KEY = "lance_writes"
"""Key of the `SharedTaskState` in the task's context."""


@dataclass(slots=True)
class SharedTaskState:
    """Reads and writes of a running task, shared by all its `lance_spark` blocks.

    Writes without a key are numbered across blocks: if each block started at 1, two writes would have one
    key, and the second would be mistaken for a retry of the first. Tables are identified by name alone, since
    several connections may lead to one table.
    """

    outlets: Sequence[Any]
    """The task's outlets as the DAG has them."""
    read: dict[str, list[Any]] = field(default_factory=dict)
    written: list[dict[str, Any]] = field(default_factory=list)
    outdated: list[LanceTable] = field(default_factory=list)
    """Tables of skipped writes, after which others have committed."""
    counted: dict[str, CountedWrites] = field(default_factory=dict)
    keys: Counter[tuple[str, str]] = field(default_factory=Counter)
    computed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of computations begun by table and column; a repeated computation counts once."""
    failed: dict[tuple[str, str], object] = field(default_factory=dict)
    """The last computation by table and column, if it failed."""
    ranges: list[tuple[str, int]] = field(default_factory=list)
    """Ranges of changes that are being read, each with the thread that is in its block."""
    running: set[tuple[str, str | None]] = field(default_factory=set)
    """The tables and keys of the writes that threads are making; of writes without a key, also with None."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, context: Any) -> SharedTaskState:
        """Return the state that is stored in a task's context."""
        # `setdefault` is atomic: several threads may ask first.
        state: SharedTaskState = context.setdefault(_CONTEXT_KEY, cls(tuple(context["task"].outlets)))
        return state

    def begin_range(self, name: str) -> None:
        """Begin a block whose writes belong to a range of changes.

        Raises:
            AirflowFailException: another thread is in such a block: whether the key of a write contains that
                range would depend on timing.
        """
        with self.lock:
            thread = threading.get_ident()
            if others := [other for other, owner in self.ranges if owner != thread]:
                raise AirflowFailException(
                    f"changes: another thread of this task is in a block of bookmark {others[0]!r}, so that "
                    "it isn't known to which of the two a write belongs; begin one block after the other one"
                )
            self.ranges.append((name, thread))

    @contextmanager
    def writing(self, table: str, identify: Callable[[], str], *, is_counted: bool) -> Iterator[str]:
        """Provide the key of a write for the block that makes it.

        Args:
            table: the table's name.
            identify: returns the key.
            is_counted: whether no key was given, so that a number identifies the write. The order in which
                threads take numbers may differ in a retry, even where keys contain a digest of the rows.

        Raises:
            AirflowFailException: another thread is writing under the same key, or both writes have no key.
        """
        with self.lock:
            key = identify()
            started = {(table, key), *([(table, None)] if is_counted else [])}
            if taken := started & self.running:
                how = f"under the key {key!r}" if (table, key) in taken else "without a key"
                raise AirflowFailException(
                    f"table {table}: another thread of this task is writing to it {how}, for which this "
                    "write would be taken; set the key of each write to what identifies its rows"
                )
            self.running |= started
        try:
            yield key
        finally:
            with self.lock:
                self.running -= started


class BlockExecution(Execution):
    """A `lance_spark` block of a task: identifies its writes, and records its reads and writes."""

    def __init__(self, hook: LanceHook, context: Context) -> None:
        self._hook = hook
        self._context = context
        self._counted: dict[str, CountedWrites] = {}
        """The counted writes to each table that this block has written to."""

    @cached_property
    def _task(self) -> SharedTaskState:
        return SharedTaskState.of(self._context)

    def check_given(self, method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """See `Execution.check_given`.

        Raises:
            AirflowFailException: an argument that selects what to read, replace, delete or identify is None
                or empty text: the output of a task that was marked as success; or a condition is the text
                of True or False, which a template of the task's arguments makes of a check.
        """
        given = signature(method).bind(None, *args, **kwargs).arguments
        refuse_empty(_MAY_NOT_BE_EMPTY, given)
        for name in _CONDITIONS:
            check_condition(name, given.get(name))

    def record_read(self, table: TableId, location: str, *versions: int | None) -> None:
        """See `Execution.record_read`."""
        self._task.read.setdefault(str(table), []).append((location, *versions))

    @property
    def execution_id(self) -> str | None:
        """See `Execution.execution_id`."""
        return execution_id_of(self._context)

    @contextmanager
    def computing(self, table: TableId, column: str, where: str | None, what: object) -> Iterator[str | None]:
        """See `Execution.computing`: a task's computations of one column are numbered.

        A failed computation that is repeated next keeps its number, by which it skips what it has finished.
        """
        task, target, computation = self._task, (str(table), column), (where, what)
        with task.lock:
            is_repeated = target in task.failed and task.failed.pop(target) == computation
            task.computed[target] += not is_repeated
            number = task.computed[target]
        try:
            yield numbered_execution_id(execution_id_of(self._context), number)
        except BaseException:
            task.failed[target] = computation
            raise

    def begin_range(self, name: str) -> None:
        """See `Execution.begin_range`."""
        self._task.begin_range(name)

    def end_range(self) -> None:
        """See `Execution.end_range`."""
        self._task.ranges.pop()

    def write(self, pending: PendingWrite) -> WriteResult:
        """See `Execution.write`: without a key, the task and the number of the write identify it.

        Raises:
            AirflowFailException: a number no longer identifies the same rows, or another thread is making a
                write under the same key.
        """
        from airflow_provider_lancens.operators._spark.result_log import log_result, written_again
        from airflow_provider_lancens.spark.options import WriteIdentity
        from airflow_provider_lancens.spark.write.write_context import WriteContext

        name, given = str(pending.table), pending.identity
        counted, fingerprint = None, given.fingerprint
        if given.key is None:
            counted = self._task.counted.setdefault(name, CountedWrites(name))
            self._counted[name] = counted

        def identify() -> str:
            if counted is None:
                return str(given.key)
            return counted.next_key(self._task_key(pending.digest))

        with self._task.writing(name, identify, is_counted=counted is not None) as key:
            if counted is not None:
                fingerprint = counted.fingerprint(
                    fingerprint, self._task.read, pending.conditions, pending.digest
                )

            def begin(target: ResolvedTable, request: WriteRequest) -> WriteContext:
                if counted is None:
                    return WriteContext.begin(target, request)
                moved = key_of_moved_task(key, self._context, target)
                return counted.begin(target, replace(request, identity=replace(request.identity, key=moved)))

            policy = existing_key_policy(given.on_existing_key, self._context)
            execution_id = given.execution_id or self._execution_id(name, key)
            result = pending.commit(WriteIdentity(key, fingerprint, policy, execution_id), begin)
            if counted is not None:
                counted.made += 1
            self._task.keys[name, key] += 1
        self.report(pending.table, result)
        log_result(self._hook.lance_conn_id, result, written_again(self._context["task"].task_id))
        return result

    def report(self, table: TableId, result: WriteResult) -> None:
        """See `Execution.report`: an outlet that is the table's asset is updated."""
        written = LanceTable.of(self._hook.asset_authority, table)
        with self._task.lock:  # threads that write to one table extend the same event
            if result.is_outdated:
                self._task.outdated.append(written)
            elif result.version is not None:
                version, previous = result.version, result.previous_version
                emit_asset_event(self._context, self._task.outlets, written, version, previous, result.event)
            self._leave_out_outdated()
            self._task.written.append(result.as_dict())
            self._context["ti"].xcom_push(WRITES_XCOM, self._task.written)  # read by sensors downstream

    def _leave_out_outdated(self) -> None:
        """Emit no event for a table of which each write so far was skipped and is outdated."""
        if self._task.outdated:
            task = self._context["task"]
            task.outlets = list(self._task.outlets)  # undo removals: an asset may have an event since
            for table in self._task.outdated:
                emit_no_event(self._context, task, table)

    def warn_of_missing_writes(self) -> None:
        """Warn of writes of an earlier try or execution that the ended task hasn't repeated."""
        for table, counted in self._counted.items():
            try:
                if counted.has_missing_writes(self._hook.get_conn()):
                    _log.warning(_LEFT, table, counted.made)
            except Exception as error:  # noqa: BLE001 - all writes are committed, so the task must not fail
                _log.info(
                    "table %s: earlier writes of the task weren't looked for: %s", table, redact(str(error))
                )

    def _task_key(self, digest: Callable[[], str | None]) -> str:
        """Return the task's part of a default key; with a digest of the rows if its item is unknown."""
        from airflow_provider_lancens.operators._spark.mapped_item import UnknownMappedItemError

        try:
            key = default_key(self._context)
        except UnknownMappedItemError:
            if (item := digest()) is None:
                raise
            key = default_key(self._context, item=item[-16:])
        # Rows computed from another range of changes are another write.
        return "/".join([key, *(name for name, _ in self._task.ranges)])

    def _execution_id(self, table: str, key: str) -> str:
        """Return what a write shares with the same call in other tries, and no other call of this try."""
        return numbered_execution_id(execution_id_of(self._context), self._task.keys[table, key] + 1)


@contextmanager
def lance_spark(
    *,
    lance_conn_id: str = DEFAULT_CONNECTION,
    spark_conn_id: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    hive_tables: bool = False,
) -> Iterator[LanceCatalog]:
    """Open Spark and the Lance tables of a connection for the running task; Spark ends with the task.

    It also ends if the task is killed. An existing session, such as the session of ``@task.pyspark``, is
    used and not stopped.

    Args:
        lance_conn_id: a connection of any of this provider's types.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None runs it in
            the task's process.
        spark_conf: Spark configuration, which overrides the connection's.
        hive_tables: True lets Spark read the Hive tables of the connection's metastore,
            ``lake.spark.table("sales.orders")``; only for connections of type ``lance_hive2`` and
            ``lance_hive3``.

    Raises:
        LanceRetryableError: the task was killed.
        AirflowFailException: a connection is invalid, runs the driver on the cluster, or has no Hive tables.
    """
    from airflow.sdk import get_current_context

    from airflow_provider_lancens.hooks.spark_connection import SparkDeployment

    try:
        check_flag("hive_tables", hive_tables)
    except TypeError as error:
        raise AirflowFailException(str(error)) from None
    context = get_current_context()
    deployment = SparkDeployment.of(spark_conn_id, spark_conf)
    deployment.check_driver_here()
    name = f"{context['ti'].dag_id}.{context['ti'].task_id}"
    with (
        closing(LanceHook.for_connection(lance_conn_id)) as hook,
        _ends_with(context["task"]) as work,
        work.session(name, (deployment.with_hive_tables(hook) if hive_tables else deployment).conf) as spark,
    ):
        block = BlockExecution(hook, context)
        yield hook.catalog(spark=spark, execution=block)
        block.warn_of_missing_writes()


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
            if outer is not None:  # restore the handler of the enclosing block
                task.on_kill = outer
