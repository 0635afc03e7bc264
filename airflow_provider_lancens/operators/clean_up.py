"""Cleaning up a table: old versions, and what failed writes left behind. One process does it, no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.arguments import parse_table
from airflow_provider_lancens.links import LanceGlueTableLink
from airflow_provider_lancens.operators.base import LanceOperator
from airflow_provider_lancens.spark.maintenance.options import DEFAULT_AGE, check_age, check_positive

if TYPE_CHECKING:
    from airflow.sdk import Context


class LanceCleanUpVersionsOperator(LanceOperator):
    """Remove old versions of a table, and the files that only they refer to; tagged versions stay.

    Its XCom is ``{"table": str, "version": int, "versions": int, "files": int, "bytes": int, "tagged": int,
    "seconds": float, "dry_run": bool}``: how many went, and how many older ones a tag keeps. The table's
    version doesn't move.

    Args:
        table: its identifier, ``database$table``. Templated.
        older_than: how old a version has to be to go; a reader without a tag has this long.
        keep_versions: how many of the newest stay, however old.
        dry_run: only say what would go.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", *LanceOperator.template_fields)
    operator_extra_links = (LanceGlueTableLink(),)

    def __init__(
        self,
        *,
        table: str,
        older_than: timedelta = DEFAULT_AGE,
        keep_versions: int = 1,
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_age("older_than", older_than)
        check_positive("keep_versions", keep_versions)
        self.table = table
        self.older_than = older_than
        self.keep_versions = keep_versions
        self.only_look = dry_run  # `dry_run` is a method of every operator

    def execute(self, context: Context) -> dict[str, Any]:
        """Remove them.

        Raises:
            AirflowFailException: there is no such table, or metastore and storage disagree on its version.
            LanceRetryableError: the metastore or the storage didn't answer.
        """
        from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions

        table = str(parse_table(self.table))
        with self.connected(f"cleaning up old versions of table {table!r}") as namespace:
            result = clean_up_versions(
                namespace,
                table,
                older_than=self.older_than,
                keep_versions=self.keep_versions,
                dry_run=self.only_look,
            )
        return result.as_dict()


class LanceRemoveOrphansOperator(LanceOperator):
    """Remove the files that failed writes left behind: those that no version and no running write needs.

    Its XCom is ``{"table": str, "files": int, "bytes": int, "dry_run": bool}``: what went, or would go.

    Args:
        table: its identifier, ``database$table``. Templated.
        older_than: how old a file has to be to go, at least ten minutes. Writes of this package mark
            themselves while they run; for other writers, let it be longer than any of their jobs.
        dry_run: only say what would go.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", *LanceOperator.template_fields)
    operator_extra_links = (LanceGlueTableLink(),)

    def __init__(
        self,
        *,
        table: str,
        older_than: timedelta = timedelta(days=7),
        dry_run: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_age("older_than", older_than)
        self.table = table
        self.older_than = older_than
        self.only_look = dry_run  # `dry_run` is a method of every operator

    def execute(self, context: Context) -> dict[str, Any]:
        """Remove them.

        Raises:
            AirflowFailException: there is no such table, it has branches or detached versions, or
                ``older_than`` is too short.
            LanceRetryableError: the metastore or the storage didn't answer.
        """
        from airflow_provider_lancens.spark.orphans import remove_orphans

        table = str(parse_table(self.table))
        with self.connected(f"removing what failed writes left in table {table!r}") as namespace:
            found = remove_orphans(namespace, table, older_than=self.older_than, dry_run=self.only_look)
        return {
            "table": table,
            "files": len(found.paths),
            "bytes": found.bytes,
            "dry_run": self.only_look,
        }
