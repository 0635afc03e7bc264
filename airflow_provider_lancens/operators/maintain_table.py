"""Operator that does all maintenance of a table, each step only if it is due, for a DAG that runs hourly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import check_flag, check_mapping, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators._spark.maintenance_args import (
    check_thresholds,
    compaction_options,
    index_specs,
    parse_thresholds,
)
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_AGE,
    DEFAULT_MAX_DELETED_SHARE,
    DEFAULT_MAX_REMOVAL_DELAY,
    DEFAULT_MAX_UNINDEXED_SHARE,
    DEFAULT_MIN_REMOVABLE_VERSIONS,
    DEFAULT_MIN_SMALL_FRAGMENTS,
    DEFAULT_SEGMENTS,
    check_index_names,
    check_retention,
)
from airflow_provider_lancens.spark.options import check_positive

if TYPE_CHECKING:
    from airflow.sdk import Context

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
