"""Operators that maintain a table: all steps in one task, or compaction, indices and clean-ups each alone.

Compactions and indices run on Spark's executors; clean-ups need no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
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
    index_specs,
    parse_thresholds,
)
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.operators.lance_operator import LanceOperator
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_AGE,
    DEFAULT_MAX_DELETED_SHARE,
    DEFAULT_MAX_REMOVAL_DELAY,
    DEFAULT_MAX_UNINDEXED_SHARE,
    DEFAULT_MIN_REMOVABLE_VERSIONS,
    DEFAULT_MIN_SMALL_FRAGMENTS,
    DEFAULT_ORPHAN_AGE,
    DEFAULT_SEGMENTS,
    IF_INDEX_EXISTS,
    IfIndexExists,
    IndexSpec,
    check_age,
    check_index_names,
    check_retention,
)
from airflow_provider_lancens.spark.options import check_positive

if TYPE_CHECKING:
    from airflow.sdk import Context

_CHANGING = ("extend", "replace")
_THRESHOLDS = (
    "min_small_fragments",
    "max_deleted_share",
    "max_unindexed_share",
    "min_removable_versions",
    "max_removal_delay",
)


class LanceMaintainOperator(LanceSparkOperator):
    """Compact a table, extend its indices and remove its old versions, in this order, each if it is due.

    The thresholds are compared with the metadata of one version, in the task's process. Spark is started only
    if a compaction or an index is due, once for both. The log states the reason why each step is done or not.
    A repeated task decides again, and runs the remaining steps. If a step fails, the commits of the others
    stay, and the error names the step.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int,
    "steps": dict[str, dict], "seconds": float, "reason": str, "location": str | None}``. ``steps`` has the
    results by step: ``compact``, ``index.<name>``, ``expire``, and ``orphans`` if it was asked for and due,
    each as the XCom of the operator for this step, with a ``reason``. ``outcome`` is ``planned`` with
    `dry_run`. If it committed a version and an outlet is the table's asset or an asset alias, the extra of
    its event contains the table and both versions.

    Args:
        table: table identifier, ``database$table``. Templated.
        compaction: fields of `airflow_provider_lancens.spark.maintenance.CompactionOptions`, such as
            ``target_rows_per_fragment``.
        indices: the indices that the table must have, each a mapping of ``column`` and ``index_type``, and
            optionally ``name`` and ``options``, as of `LanceCreateIndexOperator`. They are built if
            they are missing, and extended by rows that they don't cover; other indices aren't changed.
        segments: maximum number of segments that an index is built with.
        older_than: minimum time since a version to remove was replaced, which a reader without a tag has.
        keep_versions: number of newest versions to keep regardless of age.
        keys_older_than: age at which an idempotency key expires, so that a write under it is refused; by
            default keys are kept as long as the table.
        orphans_older_than: also remove files of failed writes of this age, at least ten minutes, in the runs
            that clean up; by default they are left to the clean-up, which removes them after a week.
        min_small_fragments: compact if at least as many small fragments can be merged. Templated.
        max_deleted_share: compact if a greater share of the rows is deleted, 0 to 1. Templated.
        max_unindexed_share: extend an index if the share of rows that it doesn't cover is greater, 0 to 1.
            After a compaction, it is extended if any row isn't covered. Templated.
        min_removable_versions: clean up if at least as many versions can be removed. Templated.
        max_removal_delay: clean up if a version could have been removed for that long. Templated.
        dry_run: only report which steps are due, and what they would do; Spark isn't started, and no asset
            event is emitted.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None runs it in
            the task's process. Templated.
        spark_conf: Spark configuration, which overrides the connection's; by default ``local[2]`` without a
            web UI, in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", *_THRESHOLDS, *LanceSparkOperator.template_fields)
    may_be_empty = _THRESHOLDS
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        compaction: Mapping[str, Any] | None = None,
        indices: Iterable[Mapping[str, Any]] = (),
        segments: int = DEFAULT_SEGMENTS,
        older_than: timedelta = DEFAULT_AGE,
        keep_versions: int = 1,
        keys_older_than: timedelta | None = None,
        orphans_older_than: timedelta | None = None,
        min_small_fragments: int | str | None = DEFAULT_MIN_SMALL_FRAGMENTS,
        max_deleted_share: float | str | None = DEFAULT_MAX_DELETED_SHARE,
        max_unindexed_share: float | str | None = DEFAULT_MAX_UNINDEXED_SHARE,
        min_removable_versions: int | str | None = DEFAULT_MIN_REMOVABLE_VERSIONS,
        max_removal_delay: timedelta | str | None = DEFAULT_MAX_REMOVAL_DELAY,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.min_small_fragments = min_small_fragments
        self.max_deleted_share = max_deleted_share
        self.max_unindexed_share = max_unindexed_share
        self.min_removable_versions = min_removable_versions
        self.max_removal_delay = max_removal_delay
        check_thresholds(**{name: getattr(self, name) for name in _THRESHOLDS})
        self.compaction = compaction_options("compaction", check_mapping("compaction", compaction))
        self.indices = index_specs("indices", indices)
        check_index_names(self.indices)
        check_positive("segments", segments)
        check_retention(
            older_than, keep_versions, keys_older_than=keys_older_than, orphans_older_than=orphans_older_than
        )
        self.segments = segments
        self.is_dry_run = check_flag("dry_run", dry_run)  # `dry_run` is a method of every operator
        self.older_than = older_than
        self.keep_versions = keep_versions
        self.keys_older_than = keys_older_than
        self.orphans_older_than = orphans_older_than

    def execute(self, context: Context) -> dict[str, Any]:
        """Decide which steps are due, and run them.

        Raises:
            AirflowFailException: there is no such table, a direct (uncoordinated) writer bypassed its
                metastore, a column can't have such an index, or a threshold is invalid.
            LanceRetryableError: the metastore or the storage is unavailable, or the same rows were changed
                concurrently.
        """
        table, thresholds = parse_table(self.table), parse_thresholds(self, *_THRESHOLDS)
        with self.opened_with_spark(context) as lake:
            result = lake.table(table).maintain(
                indices=self.indices,
                segments=self.segments,
                older_than=self.older_than,
                keep_versions=self.keep_versions,
                keys_older_than=self.keys_older_than,
                orphans_older_than=self.orphans_older_than,
                thresholds=thresholds,
                compaction_options=self.compaction,
                dry_run=self.is_dry_run,
            )
        self.emit_asset_event(context, result)
        return result.as_dict()


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


class LanceCleanUpVersionsOperator(LanceOperator):
    """Remove old versions of a table and the files that only they reference; tagged versions are kept.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int,
    "versions": int, "files": int, "bytes": int, "kept_by_tag": int, "expired_keys": int, "expired_bookmarks":
    list[str], "clones": list[str], "seconds": float, "reason": str, "location": str | None}``: how many were
    removed, how many older ones a tag protects, how many idempotency keys expired, the names of the bookmarks
    that weren't moved in time, and the shallow clones for which files were kept. The table's version advances
    only if a write is presumed dead: an empty commit then prevents that write from committing.

    Args:
        table: table identifier, ``database$table``. Templated.
        older_than: minimum time since a version to remove was replaced, which a reader without a tag has.
        keep_versions: number of newest versions to keep regardless of age.
        keys_older_than: age at which an idempotency key expires, so that a write under it is refused; by
            default keys are kept as long as the table.
        dry_run: only report what would be removed.
        min_removable_versions: clean up only if at least as many versions can be removed; by default always.
            One listing of the versions decides. Templated.
        max_removal_delay: clean up only if a version could have been removed for that long; with both, one
            of them suffices. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "min_removable_versions",
        "max_removal_delay",
        *LanceOperator.template_fields,
    )
    may_be_empty = ("min_removable_versions", "max_removal_delay")
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        older_than: timedelta = DEFAULT_AGE,
        keep_versions: int = 1,
        keys_older_than: timedelta | None = None,
        dry_run: bool = False,
        min_removable_versions: int | str | None = None,
        max_removal_delay: timedelta | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_thresholds(min_removable_versions=min_removable_versions, max_removal_delay=max_removal_delay)
        check_retention(older_than, keep_versions, keys_older_than=keys_older_than)
        self.table = table
        self.older_than = older_than
        self.keep_versions = keep_versions
        self.keys_older_than = keys_older_than
        self.is_dry_run = check_flag("dry_run", dry_run)  # `dry_run` is a method of every operator
        self.min_removable_versions = min_removable_versions
        self.max_removal_delay = max_removal_delay

    def execute(self, context: Context) -> dict[str, Any]:
        """Remove the versions.

        Raises:
            AirflowFailException: there is no such table, or metastore and storage disagree on its version.
            LanceRetryableError: the metastore or the storage is unavailable, or a write has been running for
                about a week.
        """
        table = parse_table(self.table)
        thresholds = parse_thresholds(self, "min_removable_versions", "max_removal_delay")
        with self.opened(context) as lake:
            result = lake.table(table).expire_versions(
                older_than=self.older_than,
                keep_versions=self.keep_versions,
                keys_older_than=self.keys_older_than,
                dry_run=self.is_dry_run,
                thresholds=thresholds,
            )
        return result.as_dict()


class LanceRemoveOrphansOperator(LanceOperator):
    """Remove files of failed writes, which no version references and no running write needs.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int | None, "previous_version":
    int | None, "files": int, "bytes": int, "unfenced": int, "clones": list[str], "seconds": float, "reason":
    str, "location": str | None}``: what was or would be removed, and the shallow clones for which such files
    were kept; ``unfenced`` counts writes that seem dead, but whose files are kept.

    Args:
        table: table identifier, ``database$table``. Templated.
        older_than: minimum age of files to remove, at least ten minutes. Writes of this package hold a lease
            while they run; if there are other writers, choose it longer than any of their jobs.
        dry_run: only report what would be removed.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", *LanceOperator.template_fields)
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        older_than: timedelta = DEFAULT_ORPHAN_AGE,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_age("older_than", older_than)
        self.table = table
        self.older_than = older_than
        self.is_dry_run = check_flag("dry_run", dry_run)  # `dry_run` is a method of every operator

    def execute(self, context: Context) -> dict[str, Any]:
        """Remove the files.

        Raises:
            AirflowFailException: there is no such table, it has branches or detached versions,
                ``older_than`` is too short, or a write is presumed dead while metastore and storage
                disagree.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        table = parse_table(self.table)
        with self.opened(context) as lake:
            found = lake.table(table).remove_orphans(older_than=self.older_than, dry_run=self.is_dry_run)
        return found.as_dict()
