"""Operator that finds the versions of a table that a consumer has not read yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_lancens.hooks.airflow_errors import AirflowSkipException
from airflow_provider_lancens.hooks.template_args import check_choice, parse_table
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

IfUnavailable = Literal["fail", "read_all"]
FAIL_OR_READ_ALL = ("fail", "read_all")


class LanceFindChangesOperator(LanceOperator):
    """Find the versions of a table that a consumer has not read: from its bookmark up to the newest one.

    A bookmark is a tag, which keeps the version that it names from clean-ups. `LanceTagOperator` moves
    it once the changes are written: until then, every run finds them again. Without the tag,
    ``previous_version`` is None, and all rows are changes. A bookmark that wasn't moved for its
    ``expires_after`` expires at a clean-up, and changes after it may be lost, deletions among them.

    Its XCom is ``{"table": str, "previous_version": int | None, "version": int, "location": str}``, which can
    be passed to an ingestion's ``inputs``, whose function reads ``orders.changes()``, and to ``lake.table``.
    Its ``version`` and ``location`` are passed to `LanceTagOperator`.

    Args:
        table: table identifier, ``database$table``. Templated.
        bookmark: the name of the tag, one for each consumer. Templated.
        if_unavailable: if the bookmark has expired, ``fail`` fails the task without retries; with
            ``read_all``, ``previous_version`` is None, so the consumer reads the whole table, and must
            replace its earlier results.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "bookmark", *LanceOperator.template_fields)
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self, *, table: str, bookmark: str, if_unavailable: IfUnavailable = "fail", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.bookmark = bookmark
        self.if_unavailable = check_choice("if_unavailable", if_unavailable, FAIL_OR_READ_ALL)

    def execute(self, context: Context) -> dict[str, Any]:
        """Find the versions.

        Raises:
            AirflowSkipException: nothing was committed since.
            AirflowFailException: there is no such table, the tag's name is invalid, or the bookmark has
                expired and ``if_unavailable`` is ``fail``.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        from airflow_provider_lancens.hooks.table_checks import check_tag

        table, name = parse_table(self.table), check_tag(self.bookmark, "bookmark")
        with self.opened(context) as lake:
            unread = lake.table(table).find_changes(name, if_unavailable=self.if_unavailable)
        found, previous, newest = unread.bookmark, unread.previous_version, unread.version
        if unread.is_empty:
            after = f"after {previous}, its bookmark's" if previous else "yet"
            raise AirflowSkipException(f"table {str(table)!r} has no version {after}")
        if found is not None and found.is_expired:
            self.log.warning(
                "Bookmark %r of table %s expired at %s: if_unavailable='read_all': reading the whole table",
                name,
                table,
                found.expired_at,
            )
        self.log.info("Table %s: versions after %s, up to %s", table, previous, newest)
        pinned = {"table": str(table), "previous_version": previous, "version": newest}
        return {**pinned, "location": unread.location}
