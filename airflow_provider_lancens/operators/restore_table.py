"""The operator that restores an older version of a table. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import (
    check_choice,
    check_flag,
    parse_table,
    parse_text,
)
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators._spark.idempotency import identity_in
from airflow_provider_lancens.operators.lance_operator import LanceOperator
from airflow_provider_lancens.operators.versions import check_given_version, given_version
from airflow_provider_lancens.spark.options import ON_EXISTING_KEY, OnExistingKey

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.spark.table.version_lookup import VersionLike


class LanceRestoreOperator(LanceOperator):
    """Restore an older version of a table, by its number, a time or a tag, exactly once.

    A new commit makes that version the newest; no version is removed. The commits in between are undone:
    their idempotency keys count as never committed, so the tasks that made them write their rows again when
    they are cleared. A task that is retried finds its restore and commits nothing; a cleared task restores
    again.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int,
    "restored_version": int | None, "undone": list[dict], "key": str | None, "inserted": int, "updated": int,
    "deleted": int, "files": int, "bytes": int, "staged_version": None, "seconds": float, "reason": str,
    "location": str | None}``. ``undone`` has the commits that it undoes: ``version``, ``operation``, ``key``,
    ``inserted``, ``updated`` and ``deleted`` of each. ``outcome`` is ``found`` if an earlier try of the same
    execution made the commit, and ``skipped`` if another execution did; ``undone`` is then empty. It is
    ``planned`` with `dry_run`, and ``version`` the newest one. The counts are 0. If an outlet is the table's
    asset or an asset alias, the extra of its event contains the table, both versions and
    ``restored_version``; a skipped restore after which others have committed emits no event.

    Args:
        table: table identifier, ``database$table``. Templated.
        version: the version to restore: a number; a time with a time zone in the past, which means the
            version that was the newest then; or the name of a tag. Templated.
        dry_run: only list the commits that would be undone; there is no commit and no asset event.
        location: where the table was, from the XCom that `version` is from: if another table has the name by
            then, the task fails, and nothing is restored. None doesn't check it. Templated.
        key: identifies this restore. By default it consists of the DAG, the task, the item of a mapped task,
            and the data interval, or the run if there is no interval. Templated.
        on_existing_key: what to do if another execution, such as one before a clear, has committed under the
            key: ``redo`` restores again, and fails if others have changed rows since; ``redo_if_changed``
            does so if the version differs; ``skip`` restores nothing; ``write_again`` restores whatever
            others did. ``lance_on_existing_key`` in the run's configuration overrides it, for all
            tasks or by task id.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "version",
        "location",
        "key",
        *LanceOperator.template_fields,
    )
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        version: VersionLike,
        dry_run: bool = False,
        location: str | None = None,
        key: str | None = None,
        on_existing_key: OnExistingKey = "redo",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_given_version(version)
        check_choice("on_existing_key", on_existing_key, ON_EXISTING_KEY)
        self.table = table
        self.version = version
        self.is_dry_run = check_flag("dry_run", dry_run)  # `dry_run` is a method of every operator
        self.location = location
        self.key = key
        self.on_existing_key: OnExistingKey = on_existing_key

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the restore of an earlier run, or restore the version.

        Raises:
            AirflowFailException: there is no such table, tag or version, the version lacks files, the table
                is at another location, or the key was committed with other arguments.
            LanceRetryableError: others committed meanwhile, or the metastore or the storage is unavailable.
        """
        from airflow_provider_lancens.lineage.task_lineage import TableWrite

        table, wanted = parse_table(self.table), given_version(self.version)
        with self.opened(context) as lake:
            identity = identity_in(lake, table, self.key, self.on_existing_key, context)
            result = lake.table(table).restore(
                wanted, dry_run=self.is_dry_run, key=identity, location=parse_text(self.location)
            )
            write = TableWrite(
                table=table,
                version=result.version,
                previous_version=result.previous_version,
                committed=result.is_done,
                lifecycle="OVERWRITE" if result.is_done else None,
                source_version=result.restored_version,
            )
            if not self.is_dry_run:
                self.note_lineage(lake.namespace, write)
        self.emit_asset_event(context, result)
        return result.as_dict()
