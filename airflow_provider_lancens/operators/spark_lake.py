"""For a task's own PySpark: tables read at a version, tables written once, in any `@task`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.assets.events import note_version
from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.hooks.arguments import parse_mapping, parse_table
from airflow_provider_lancens.hooks.base import LanceHook
from airflow_provider_lancens.hooks.errors import airflow_errors
from airflow_provider_lancens.operators.base import DEFAULT_CONNECTION
from airflow_provider_lancens.operators.naming import default_idempotency_key, fingerprint_of
from airflow_provider_lancens.operators.sources import PinnedTable
from airflow_provider_lancens.operators.spark_work import SparkWork, killable

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.spark.options import Mode, OnChanged, WriteOptions


class SparkLake:
    """A Spark session beside the tables of a connection; `lance_spark` makes it."""

    def __init__(self, spark: Any, hook: LanceHook, context: Context) -> None:
        self.spark = spark
        self._hook = hook
        self._context = context
        self._read: dict[str, list[int | None]] = {}
        self._writes: Counter[str] = Counter()

    def read(
        self,
        table: str | Mapping[str, Any],
        version: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 what Lance's own readers call it
    ) -> Any:
        """A table at exactly one version, as a DataFrame.

        Args:
            table: its identifier, ``database$table``, or what names table and version: the XCom of a
                sensor or of an ingestion.
            version: which version; None is the one that `table` names, else the newest one now.
            columns: which columns; None is all.
            filter: a condition in Lance's SQL, worked off on the executors.

        Raises:
            AirflowFailException: `table` names none, or there is no such table, version or column.
        """
        from airflow_provider_lancens.spark.reader import read_table

        if isinstance(table, Mapping):
            pinned = PinnedTable.parse("table", table)
            table, version = pinned.table, pinned.version if version is None else version
        name = str(parse_table(table))
        self._read.setdefault(name, []).append(version)
        with airflow_errors(f"reading table {name!r} through connection {self._hook.lance_conn_id!r}"):
            return read_table(
                self.spark, self._hook.get_conn(), name, version=version, columns=columns, filter=filter
            )

    def write(
        self,
        df: Any,
        table: str,
        *,
        mode: Mode = "append",
        on: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        fingerprint: str | None = None,
        on_changed: OnChanged = "fail",
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write a DataFrame into a declared table, exactly once; an outlet that is its asset is updated.

        Args:
            df: the rows.
            table: the table's identifier, ``database$table``.
            mode: ``append``, ``overwrite``, ``create`` or ``upsert``.
            on: the columns that are the key of an ``upsert``.
            idempotency_key: what this write is; None is the task, its data interval or run, the table, and
                which of the task's writes to it.
            fingerprint: tells what is written under the key; None, under the default key, is the versions
                that were read before.
            on_changed: what to do where the key was committed with another fingerprint: ``fail`` or
                ``replace``.
            options: fields of `airflow_provider_lancens.spark.WriteOptions`.

        Returns:
            What `LanceSparkIngestOperator` has as its XCom; it fits as the argument of `read`.

        Raises:
            AirflowFailException: an argument can't be what it is, or the table can't take the rows.
            LanceRetryableError: the metastore or the storage didn't answer, or another commit won.
        """
        from airflow_provider_lancens.spark.writer import write_table

        name = str(parse_table(table))
        layout = _write_options(options)
        if not idempotency_key:
            idempotency_key = self._default_key(name)
            fingerprint = fingerprint or fingerprint_of(self._read)
        with airflow_errors(f"writing table {name!r} through connection {self._hook.lance_conn_id!r}"):
            result = write_table(
                df,
                self._hook.get_conn(),
                name,
                mode=mode,
                on=on,
                idempotency_key=idempotency_key,
                fingerprint=fingerprint,
                on_changed=on_changed,
                options=layout,
            )
        self._writes[name] += 1
        written = LanceTable.of(self._hook.lance_conn_id, name)
        outlets = self._context["task"].outlets
        note_version(self._context, outlets, written, result.version, result.previous_version)
        return result.as_dict()

    def _default_key(self, table: str) -> str:
        key = f"{default_idempotency_key(self._context)}/{table}"
        # A second write to the table is another one; one that failed and is repeated is the same.
        return f"{key}/{self._writes[table] + 1}" if self._writes[table] else key


@contextmanager
def lance_spark(
    *,
    lance_conn_id: str = DEFAULT_CONNECTION,
    spark_conn_id: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
) -> Iterator[SparkLake]:
    """Spark and a lake for the running task; what runs there ends with the task, also where it is killed.

    A session that is there already, such as that of ``@task.pyspark``, is used and not stopped.

    Args:
        lance_conn_id: a connection of any of this provider's types.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None is the
            task's process.
        spark_conf: Spark's configuration, over the connection's.

    Raises:
        LanceRetryableError: the task was killed.
        AirflowFailException: a connection can't be what it is; a driver of the cluster is none.
    """
    from airflow.sdk import get_current_context

    from airflow_provider_lancens.hooks.spark import SparkPlace

    context = get_current_context()
    place = SparkPlace.of(spark_conn_id, spark_conf)
    place.check_driver_here()
    name = f"{context['ti'].dag_id}.{context['ti'].task_id}"
    with (
        closing(LanceHook.for_connection(lance_conn_id)) as hook,
        _ends_with(context["task"]) as work,
        work.session(name, place.conf) as spark,
    ):
        yield SparkLake(spark, hook, context)


@contextmanager
def _ends_with(task: Any) -> Iterator[SparkWork]:
    """Work that ends when the task is killed, whatever its operator is."""
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
        raise AirflowFailException(f"options={options!r}: {error}") from error
