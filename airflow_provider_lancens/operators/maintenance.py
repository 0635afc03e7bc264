"""Operators that compact and index tables on Spark's executors, and the decision whether that is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import (
    check_choice,
    check_flag,
    check_mapping,
    is_template,
    parse_table,
)
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators._spark.maintenance_args import (
    check_thresholds,
    compaction_options,
    parse_thresholds,
)
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_SEGMENTS,
    IF_INDEX_EXISTS,
    IfIndexExists,
    IndexSpec,
)
from airflow_provider_lancens.spark.options import check_positive

if TYPE_CHECKING:
    from airflow.sdk import Context

_CHANGING = ("extend", "replace")


class LanceCompactTableOperator(LanceSparkOperator):
    """Compact a table on Spark executors: merge small fragments and remove deleted rows.

    A repeated task finds nothing left to do: it commits nothing and doesn't start Spark. Rows appended
    concurrently are kept.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int,
    "fragments_removed": int, "fragments_added": int, "files_removed": int, "files_added": int, "tasks": int,
    "seconds": float, "reason": str, "location": str | None}``. If it committed and an outlet is the table's
    asset or an asset alias, the extra of its event contains the table and both versions. With `dry_run`,
    ``outcome`` is ``planned``, and ``fragments_removed`` counts the fragments that would be rewritten.

    Args:
        table: table identifier, ``database$table``. Templated.
        options: fields of `airflow_provider_lancens.spark.maintenance.CompactionOptions`, such as
            ``target_rows_per_fragment``.
        min_small_fragments: compact only if at least as many small fragments can be merged; by default, if
            there are any. The table's metadata decides, before Spark is started. Templated.
        max_deleted_share: compact only if a greater share of the rows is deleted, 0 to 1; with both, one of
            them suffices. Templated.
        dry_run: only report what would be rewritten; Spark isn't started, and no asset event is emitted.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None runs it in
            the task's process. Templated.
        spark_conf: Spark configuration, which overrides the connection's; by default ``local[2]`` without a
            web UI, in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "min_small_fragments",
        "max_deleted_share",
        *LanceSparkOperator.template_fields,
    )
    may_be_empty = ("min_small_fragments", "max_deleted_share")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        options: Mapping[str, Any] | None = None,
        min_small_fragments: int | str | None = None,
        max_deleted_share: float | str | None = None,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_thresholds(min_small_fragments=min_small_fragments, max_deleted_share=max_deleted_share)
        self.table = table
        self.options = check_mapping("options", options)
        self.min_small_fragments = min_small_fragments
        self.max_deleted_share = max_deleted_share
        self.is_dry_run = check_flag("dry_run", dry_run)  # `dry_run` is a method of every operator
        self._compaction = compaction_options("options", self.options)

    def execute(self, context: Context) -> dict[str, Any]:
        """Compact the table.

        Raises:
            AirflowFailException: there is no such table, or a direct (uncoordinated) writer bypassed its
                metastore.
            LanceRetryableError: the metastore or the storage is unavailable, or the same rows were changed
                concurrently.
        """
        table = parse_table(self.table)
        thresholds = parse_thresholds(self, "min_small_fragments", "max_deleted_share")
        with self.opened_with_spark(context) as lake:
            result = lake.table(table).compact(
                thresholds=thresholds, compaction_options=self._compaction, dry_run=self.is_dry_run
            )
        self.emit_asset_event(context, result)
        return result.as_dict()


class LanceCreateIndexOperator(LanceSparkOperator):
    """Build a scalar, full-text or vector index over all rows of a table, on Spark executors.

    A repeated task finds the index by its name and doesn't start Spark.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int,
    "index": str, "column": str, "index_type": str, "rows": int, "segments": int, "bytes": int, "seconds":
    float, "reason": str, "location": str | None}``. If it built the index and an outlet is the table's asset
    or an asset alias, the extra of its event contains the table and both versions.

    Args:
        table: table identifier, ``database$table``. Templated.
        column: the column to index. Templated.
        index_type: such as ``BTREE``, ``BITMAP``, ``INVERTED``, ``IVF_PQ``; see docs/indices.md.
        name: by default ``<column>_idx``. Templated.
        if_exists: whether an existing index of that name, column and type is left unchanged (``skip``),
            extended by the rows that it doesn't cover (``extend``), rebuilt over all rows (``replace``), or
            fails the task without retries (``fail``).
        max_unindexed_share: with ``extend`` and ``replace``, change an existing index only if it doesn't
            cover a greater share of the rows, 0 to 1; by default always. The table's metadata decides, before
            Spark is started. Templated.
        segments: maximum number of segments of the index, each built by a Spark task.
        options: options of the index type, such as ``metric`` and ``num_partitions``.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None runs it in
            the task's process. Templated.
        spark_conf: Spark configuration, which overrides the connection's; by default ``local[2]`` without a
            web UI, in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "column",
        "name",
        "max_unindexed_share",
        *LanceSparkOperator.template_fields,
    )
    may_be_empty = ("max_unindexed_share",)
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        column: str,
        index_type: str,
        name: str | None = None,
        if_exists: IfIndexExists = "skip",
        segments: int = DEFAULT_SEGMENTS,
        options: Mapping[str, Any] | None = None,
        max_unindexed_share: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_positive("segments", segments)
        check_thresholds(max_unindexed_share=max_unindexed_share)
        if max_unindexed_share is not None and if_exists not in _CHANGING:
            raise ValueError(
                f"max_unindexed_share: requires if_exists='extend' or 'replace', got {if_exists!r}"
            )
        self.options = check_mapping("options", options)
        known = "rendered later" if is_template(column) else column
        IndexSpec(known, index_type, options=self.options)  # checked when the DAG is parsed
        self.table = table
        self.column = column
        self.index_type = index_type
        self.name = name
        self.if_exists = check_choice("if_exists", if_exists, IF_INDEX_EXISTS)
        self.segments = segments
        self.max_unindexed_share = max_unindexed_share

    def execute(self, context: Context) -> dict[str, Any]:
        """Find the index, or build it.

        Raises:
            AirflowFailException: the column can't have such an index, there are too few rows for it, or an
                existing index of that name prevents it.
            LanceRetryableError: the metastore or the storage is unavailable, or the rows were rewritten
                concurrently.
        """
        table = parse_table(self.table)
        thresholds = parse_thresholds(self, "max_unindexed_share")
        with self.opened_with_spark(context) as lake:
            result = lake.table(table).create_index(
                self.column,
                self.index_type,
                name=self.name,
                if_exists=self.if_exists,
                segments=self.segments,
                thresholds=thresholds,
                index_options=self.options,
            )
        self.emit_asset_event(context, result)
        return result.as_dict()
