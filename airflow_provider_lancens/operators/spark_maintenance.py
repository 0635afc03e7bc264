"""Maintaining a table on Spark's executors: compaction and indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.arguments import check_choice, check_mapping, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink
from airflow_provider_lancens.operators.spark_task import LanceSparkOperator
from airflow_provider_lancens.spark.maintenance.options import (
    DEFAULT_SEGMENTS,
    IF_INDEX_EXISTS,
    CompactionOptions,
    IfIndexExists,
    IndexSpec,
    check_positive,
)

if TYPE_CHECKING:
    from airflow.sdk import Context


class LanceCompactTableOperator(LanceSparkOperator):
    """Bring a table's small fragments together and leave deleted rows behind, on Spark's executors.

    A task that is run again finds nothing left to do: it commits nothing and starts no Spark. What others
    append meanwhile stays.

    Its XCom is ``{"table": str, "version": int, "previous_version": int, "fragments_removed": int,
    "fragments_added": int, "files_removed": int, "files_added": int, "tasks": int, "seconds": float,
    "committed": bool}``. Where it committed, an outlet that is the table's asset, or an alias, carries table
    and versions as its event's extra.

    Args:
        table: its identifier, ``database$table``. Templated.
        options: fields of `airflow_provider_lancens.spark.maintenance.CompactionOptions`, such as
            ``target_rows_per_fragment``.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None is the
            task's process. Templated.
        spark_conf: Spark's configuration, over the connection's; by default ``local[*]`` without a web UI,
            in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", *LanceSparkOperator.template_fields)
    operator_extra_links = (LanceGlueTableLink(),)

    def __init__(self, *, table: str, options: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.options = check_mapping("options", options)
        self._compaction = _compaction_options(self.options)

    def execute(self, context: Context) -> dict[str, Any]:
        """Compact it.

        Raises:
            AirflowFailException: there is no such table, or a writer by path bypassed its metastore.
            LanceRetryableError: the metastore or the storage didn't answer, or others changed the same rows.
        """
        from airflow_provider_lancens.spark.maintenance.compact import compact_table

        table = str(parse_table(self.table))
        attempt = f"compacting table {table!r}"
        with self.connected(attempt) as namespace, _spark_when_needed(self) as spark:
            result = compact_table(spark, namespace, table, options=self._compaction)
        if result.committed:
            self.note_version(context, table, result.version, result.previous_version)
        return result.as_dict()


class LanceCreateIndexOperator(LanceSparkOperator):
    """Build an index over all rows of a table, on Spark's executors: scalar, full-text or vector.

    A task that is run again finds the index by its name, and starts no Spark.

    Its XCom is ``{"table": str, "index": str, "column": str, "index_type": str, "version": int,
    "previous_version": int, "rows": int, "segments": int, "bytes": int, "seconds": float, "created": bool}``.
    Where it built the index, an outlet that is the table's asset, or an alias, carries table and versions as
    its event's extra.

    Args:
        table: its identifier, ``database$table``. Templated.
        column: what the index is built on. Templated.
        index_type: such as ``BTREE``, ``BITMAP``, ``INVERTED``, ``IVF_PQ``; docs/maintenance.md has them all.
        index_name: by default ``<column>_idx``. Templated.
        if_exists: whether an index of that name, column and type is left as it is (``skip``), built anew
            over all rows (``replace``), or fails the task for good (``fail``).
        segments: into how many parts the index is divided at most, each built by a Spark task.
        options: what the type takes, such as ``metric`` and ``num_partitions``.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None is the
            task's process. Templated.
        spark_conf: Spark's configuration, over the connection's; by default ``local[*]`` without a web UI,
            in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "column", "index_name", *LanceSparkOperator.template_fields)
    operator_extra_links = (LanceGlueTableLink(),)

    def __init__(
        self,
        *,
        table: str,
        column: str,
        index_type: str,
        index_name: str | None = None,
        if_exists: IfIndexExists = "skip",
        segments: int = DEFAULT_SEGMENTS,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_positive("segments", segments)
        self.options = check_mapping("options", options)
        IndexSpec(column, index_type, options=self.options)  # a wrong one shows where the DAG is parsed
        self.table = table
        self.column = column
        self.index_type = index_type
        self.index_name = index_name
        self.if_exists: IfIndexExists = check_choice("if_exists", if_exists, IF_INDEX_EXISTS)  # type: ignore[assignment]
        self.segments = segments

    def execute(self, context: Context) -> dict[str, Any]:
        """Find the index, or build it.

        Raises:
            AirflowFailException: the column can't have such an index, there are too few rows for it, or one
                of that name stands in its way.
            LanceRetryableError: the metastore or the storage didn't answer, or others rewrote the rows.
        """
        from airflow_provider_lancens.spark.maintenance.index import build_index

        table = str(parse_table(self.table))
        attempt = f"building {self.index_type} on column {self.column!r} of table {table!r}"
        with self.connected(attempt) as namespace, _spark_when_needed(self) as spark:
            result = build_index(
                *(spark, namespace, table, self.column, self.index_type),
                name=self.index_name,
                if_exists=self.if_exists,
                segments=self.segments,
                options=self.options,
            )
        if result.created:
            self.note_version(context, table, result.version, result.previous_version)
        return result.as_dict()


@contextmanager
def _spark_when_needed(task: LanceSparkOperator) -> Iterator[Callable[[], Any]]:
    """What starts Spark where the task has it; it ends with the block."""
    place = task.spark_place()
    with ExitStack() as used:
        yield lambda: used.enter_context(task.spark(place))


def _compaction_options(options: Mapping[str, Any]) -> CompactionOptions:
    try:
        return CompactionOptions(**options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options={options!r}: {error}") from error
