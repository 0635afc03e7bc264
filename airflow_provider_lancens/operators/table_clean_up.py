"""Operators that remove old versions of a table, and files of failed writes. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import check_flag, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators._spark.maintenance_args import check_thresholds, parse_thresholds
from airflow_provider_lancens.operators.lance_operator import LanceOperator
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_AGE,
    DEFAULT_ORPHAN_AGE,
    check_age,
    check_retention,
)

if TYPE_CHECKING:
    from airflow.sdk import Context


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
