"""Ingesting into a table with PySpark: the user's function makes a DataFrame, the table gets it once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Self

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.assets.events import note_version
from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.hooks.arguments import check_choice, parse_table, parse_version
from airflow_provider_lancens.links import LanceGlueTableLink
from airflow_provider_lancens.operators.naming import default_idempotency_key, fingerprint_of
from airflow_provider_lancens.operators.spark_task import LanceSparkOperator
from airflow_provider_lancens.spark.options import MODES, ON_CHANGED, Mode, OnChanged, WriteOptions

if TYPE_CHECKING:
    from airflow.sdk import Context
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.options import WriteResult

Source = Callable[..., Any]
"""A function ``source(spark, **inputs, **op_kwargs)`` that returns a DataFrame."""


class LanceSparkIngestOperator(LanceSparkOperator):
    """Write what a PySpark function makes into a declared table, exactly once.

    The task may be retried, cleared, or run twice at the same time: under one idempotency key the rows
    are committed once, and a repeated task answers with that commit without starting Spark. A session that
    is there already is used and not stopped; one of its own ends with the task, also where that is killed.

    Its XCom is ``{"table": str, "version": int, "previous_version": int | None, "rows": int,
    "files": int, "bytes": int, "seconds": float, "committed": bool}``. It fits as another ingestion's
    input. ``committed`` is false where an earlier run made the commit that it describes, or where there
    was no row to append. An outlet that is the table's asset, or an alias, carries table and versions as
    its event's extra.

    Args:
        table: identifier of the table, ``database$table``. Templated.
        source: called as ``source(spark, **inputs, **op_kwargs)``; returns the DataFrame to write.
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
            one, the pinned inputs and `op_kwargs`; under a key of your own it is for you to say, and a
            write without one is equal to any. Templated.
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
        "inputs",
        "op_kwargs",
        "idempotency_key",
        "fingerprint",
        *LanceSparkOperator.template_fields,
    )
    operator_extra_links = (LanceGlueTableLink(),)
    template_fields_renderers = {
        "inputs": "json",
        "op_kwargs": "json",
        **LanceSparkOperator.template_fields_renderers,
    }

    def __init__(
        self,
        *,
        table: str,
        source: Source,
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
        if not callable(source):
            raise TypeError(f"source={source!r}; allowed: a function source(spark, **inputs, **op_kwargs)")
        self.table = table
        self.source = source
        self.inputs = inputs or {}
        self.op_kwargs = op_kwargs or {}
        self.mode: Mode = check_choice("mode", mode, MODES)  # type: ignore[assignment]
        self.on = _key_columns(self.mode, on)
        self.idempotency_key = idempotency_key
        self.fingerprint = fingerprint
        self.on_changed: OnChanged = check_choice("on_changed", on_changed, ON_CHANGED)  # type: ignore[assignment]
        self.options = options or {}
        self._write_options = _write_options(self.options)

    def execute(self, context: Context) -> dict[str, Any]:
        """Find the commit of an earlier run, or make it.

        Raises:
            AirflowFailException: an argument can't be what it is, or the table can't take the rows.
            LanceRetryableError: the metastore or the storage didn't answer, or another commit won.
        """
        from airflow_provider_lancens.spark.once import find_write

        table = str(parse_table(self.table))
        inputs = self._parsed_inputs()
        name = self._name(context, inputs)
        self.log.info("Ingesting into table %s (%s) under key %r", table, self.mode, name["idempotency_key"])
        with self.connected(f"ingesting into table {table!r}") as namespace:
            found = find_write(namespace, table, **name)
            result = found or self._written(namespace, table, name, inputs)
        written = LanceTable.of(self.lance_conn_id, table)
        note_version(context, self.outlets, written, result.version, result.previous_version)
        return result.as_dict()

    def _name(self, context: Context, inputs: Mapping[str, PinnedTable]) -> dict[str, Any]:
        """What the write calls itself, as arguments of `find_write` and `write_table`."""
        fingerprint = self.fingerprint
        if not self.idempotency_key and not fingerprint:
            pinned = {argument: astuple(table) for argument, table in inputs.items()}
            fingerprint = fingerprint_of(pinned, self.op_kwargs)
        return {
            "idempotency_key": self.idempotency_key or default_idempotency_key(context),
            "fingerprint": fingerprint,
            "on_changed": self.on_changed,
        }

    def _written(
        self,
        namespace: LanceNamespace,
        table: str,
        name: Mapping[str, Any],
        inputs: Mapping[str, PinnedTable],
    ) -> WriteResult:
        from airflow_provider_lancens.spark.reader import read_table
        from airflow_provider_lancens.spark.writer import write_table

        with self.spark(self.spark_place()) as spark:
            frames = {
                argument: read_table(spark, namespace, pinned.table, version=pinned.version)
                for argument, pinned in inputs.items()
            }
            frame = self._call_source(spark, frames)
            return write_table(
                frame, namespace, table, mode=self.mode, on=self.on, options=self._write_options, **name
            )

    def _call_source(self, spark: Any, frames: Mapping[str, Any]) -> Any:
        frame = self.source(spark, **frames, **self.op_kwargs)
        if not hasattr(frame, "mapInArrow"):
            raise AirflowFailException(
                f"source={_name(self.source)}: it returned {type(frame).__name__}; "
                "it has to return a DataFrame"
            )
        return frame

    def _parsed_inputs(self) -> dict[str, PinnedTable]:
        """The pinned inputs, once it is clear that `source` can be called with them."""
        both = sorted(set(self.inputs) & set(self.op_kwargs))
        if both:
            raise AirflowFailException(
                f"inputs and op_kwargs both give {', '.join(both)} to source; rename one"
            )
        try:
            inspect.signature(self.source).bind(None, **{**self.inputs, **self.op_kwargs})
        except TypeError as error:
            raise AirflowFailException(
                f"source={_name(self.source)}: it can't be called with (spark, "
                f"{', '.join([*self.inputs, *self.op_kwargs])}): {error}"
            ) from error
        return {name: PinnedTable.parse(f"inputs[{name!r}]", value) for name, value in self.inputs.items()}


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at a version, as a sensor or an ingestion hands it on."""

    table: str
    version: int

    @classmethod
    def parse(cls, argument: str, value: Any) -> Self:
        """Read it from an XCom; what else stands in there is left alone.

        Raises:
            AirflowFailException: table or version is missing or can't be what it is; the message names
                the argument.
        """
        if not isinstance(value, Mapping) or not {"table", "version"} <= set(value):
            raise AirflowFailException(
                f"{argument}={value!r}; allowed: a mapping with 'table' and 'version', such as the XCom of "
                "LanceTableVersionSensor or of another ingestion"
            )
        version = parse_version(f"{argument}['version']", value["version"])
        if version is None:
            raise AirflowFailException(f"{argument}: its version is {value['version']!r}; pin it by a number")
        return cls(str(parse_table(str(value["table"]))), version)


def _key_columns(mode: Mode, on: Sequence[str] | None) -> list[str] | None:
    if (mode == "upsert") != bool(on) or isinstance(on, str):
        raise ValueError(f"on={on!r}; allowed: a list of key columns, for mode 'upsert' alone")
    return list(on) if on else None


def _write_options(options: Mapping[str, Any]) -> WriteOptions:
    try:
        return WriteOptions(**options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options={dict(options)!r}: {error}") from error


def _name(source: Source) -> str:
    return getattr(source, "__qualname__", repr(source))
