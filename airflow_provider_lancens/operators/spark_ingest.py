"""Ingesting into a table with PySpark: what a function makes, or what is in files, the table gets it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.arguments import check_choice, check_mapping, parse_table, parse_text
from airflow_provider_lancens.links import LanceGlueTableLink
from airflow_provider_lancens.operators.naming import idempotency_key
from airflow_provider_lancens.operators.spark_task import LanceSparkOperator
from airflow_provider_lancens.spark.options import MODES, ON_CHANGED, Mode, OnChanged, WriteOptions

if TYPE_CHECKING:
    from airflow.sdk import Context
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.hooks.spark import SparkPlace
    from airflow_provider_lancens.operators.sources import IngestSource, Source
    from airflow_provider_lancens.spark.files.source import FileSource
    from airflow_provider_lancens.spark.options import WriteResult


class LanceSparkIngestOperator(LanceSparkOperator):
    """Write what a PySpark function makes, or what is in files, into a declared table, exactly once.

    The task may be retried, cleared, or run twice at the same time: under one idempotency key the rows
    are committed once, and a repeated task answers with that commit without starting Spark. A session that
    is there already is used and not stopped; one of its own ends with the task, also where that is killed,
    and so does a driver that a cluster runs.

    Its XCom is ``{"table": str, "version": int, "previous_version": int | None, "rows": int,
    "files": int, "bytes": int, "seconds": float, "committed": bool}``. It fits as another ingestion's
    input. ``committed`` is false where an earlier run made the commit that it describes, or where there
    was no row to append. An outlet that is the table's asset, or an alias, carries table and versions as
    its event's extra.

    Args:
        table: identifier of the table, ``database$table``. Templated.
        source: called as ``source(spark, **inputs, **op_kwargs)``; returns the DataFrame to write. Or files
            that executors read themselves: an `airflow_provider_lancens.spark.FileSource` or the mapping of
            its fields, templated, without ``storage_options``, which are the connection's.
        inputs: tables that `source` reads, by the name of its argument: ``{"table": ..., "version": ...}``,
            such as the XCom of a sensor or of another ingestion. Each is handed over as a DataFrame of
            exactly that version. Templated.
        op_kwargs: further arguments of `source`. Templated.
        mode: ``append`` makes the data set where there is none; ``overwrite`` replaces the rows and the
            schema; ``create`` fails where there is a data set; ``upsert`` replaces rows by their key.
        on: the columns that are the key of an ``upsert``.
        idempotency_key: what this write is. By default the DAG, the task, the map index and the data
            interval, or the run where there is none: a cleared or repeated task changes nothing.
            Templated.
        fingerprint: tells what is written under the key. By default, and where the key is the default
            one, the pinned inputs and `op_kwargs`, or the files' paths, sizes and times; under a key of your
            own it is for you to say, and a write without one is equal to any. Templated.
        on_changed: what to do where the key was committed with another fingerprint: ``fail``, or
            ``replace`` what that commit brought, as `airflow_provider_lancens.spark.write_table` says.
        options: fields of `airflow_provider_lancens.spark.WriteOptions`, such as ``max_rows_per_file``.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None is the
            task's process. Templated.
        spark_conf: Spark's configuration, over the connection's; by default ``local[*]`` without a web UI,
            in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "files",
        "inputs",
        "op_kwargs",
        "idempotency_key",
        "fingerprint",
        *LanceSparkOperator.template_fields,
    )
    operator_extra_links = (LanceGlueTableLink(),)
    template_fields_renderers = {
        "files": "json",
        "inputs": "json",
        "op_kwargs": "json",
        **LanceSparkOperator.template_fields_renderers,
    }

    def __init__(
        self,
        *,
        table: str,
        source: Source | FileSource | Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        mode: Mode = "append",
        on: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        fingerprint: str | None = None,
        on_changed: OnChanged = "fail",
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.source = source
        self.files = {} if callable(source) else _words(source)
        if self.files and (inputs or op_kwargs):
            raise ValueError("inputs, op_kwargs: they are arguments of a function; source gives files")
        self.inputs = inputs or {}
        self.op_kwargs = op_kwargs or {}
        self.mode: Mode = check_choice("mode", mode, MODES)  # type: ignore[assignment]
        self.on = _key_columns(self.mode, on)
        self.idempotency_key = idempotency_key
        self.fingerprint = fingerprint
        self.on_changed: OnChanged = check_choice("on_changed", on_changed, ON_CHANGED)  # type: ignore[assignment]
        self.options = check_mapping("options", options)
        self._write_options = _write_options(self.options)

    def execute(self, context: Context) -> dict[str, Any]:
        """Find the commit of an earlier run, or make it.

        Raises:
            AirflowFailException: an argument can't be what it is, or the table can't take the rows.
            LanceRetryableError: the metastore or the storage didn't answer, or another commit won.
        """
        from airflow_provider_lancens.spark.once import find_write

        table = str(parse_table(self.table))
        source = self._parsed_source()
        key = idempotency_key(self.idempotency_key, context)
        self.log.info("Ingesting into table %s (%s) under key %r", table, self.mode, key)
        with self.connected(f"ingesting into table {table!r}") as namespace:
            fingerprint = parse_text(self.fingerprint)
            if fingerprint is None and parse_text(self.idempotency_key) is None:
                fingerprint = source.fingerprint(namespace, table)
            name: dict[str, Any] = {
                "idempotency_key": key,
                "fingerprint": fingerprint,
                "on_changed": self.on_changed,
            }
            result = find_write(namespace, table, **name) or self._written(source, namespace, table, name)
        self.note_version(context, table, result.version, result.previous_version)
        return result.as_dict()

    def _parsed_source(self) -> IngestSource:
        from airflow_provider_lancens.operators.sources import FilesOfTask, FunctionOfTask

        if callable(self.source):
            return FunctionOfTask.parse(self.source, self.inputs, self.op_kwargs)
        return FilesOfTask.parse(self.files)

    def _written(
        self, source: IngestSource, namespace: LanceNamespace, table: str, name: Mapping[str, Any]
    ) -> WriteResult:
        place = self.spark_place()
        how = {"mode": self.mode, "on": self.on, **name}
        if place.deploy_mode == "cluster":
            return self._submitted(place, source, table, how)
        with self.spark(place) as spark:
            return source.write(spark, namespace, table, options=self._write_options, **how)

    def _submitted(
        self, place: SparkPlace, source: IngestSource, table: str, how: Mapping[str, Any]
    ) -> WriteResult:
        from airflow_provider_lancens.operators.spark_submitting import make_job

        return self.submit(place, make_job(self.hook, source, table=table, write=how, options=self.options))


def _words(files: FileSource | Mapping[str, Any]) -> dict[str, Any]:
    # Loaded only for a DAG that has such a source: every module costs the parsing of all others.
    from airflow_provider_lancens.operators.sources import FilesOfTask

    return FilesOfTask.words_of(files)


def _key_columns(mode: Mode, on: Sequence[str] | None) -> list[str] | None:
    if (mode == "upsert") != bool(on) or isinstance(on, str):
        raise ValueError(f"on={on!r}; allowed: a list of key columns, for mode 'upsert' alone")
    return list(on) if on else None


def _write_options(options: Mapping[str, Any]) -> WriteOptions:
    try:
        return WriteOptions(**options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options={options!r}: {error}") from error
