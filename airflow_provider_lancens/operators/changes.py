"""Operator that finds what a consumer of a table has not read yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException

from airflow_provider_lancens.hooks.template_args import parse_table
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators.lance_operator import LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class LanceFindChangesOperator(LanceOperator):
    """Find the versions of a table that a consumer has not read: those after its bookmark, up to the newest.

    A bookmark is a tag, which keeps the version that it names from clean-ups. `LanceTagVersionOperator` moves
    it once the changes are written: until then, every run finds them again. Without the tag,
    ``previous_version`` is None, and all rows are changes.

    Its XCom is ``{"table": str, "previous_version": int | None, "version": int}``, which can be passed as
    ``{"changes": ...}`` to an ingestion's ``inputs``, and to ``lake.read_changes``.

    Args:
        table: table identifier, ``database$table``. Templated.
        bookmark: the name of the tag, one for each consumer. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("table", "bookmark", *LanceOperator.template_fields)
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(self, *, table: str, bookmark: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.bookmark = bookmark

    def execute(self, context: Context) -> dict[str, Any]:
        """Find the versions.

        Raises:
            AirflowSkipException: nothing was committed since.
            AirflowFailException: there is no such table, or the tag's name is invalid.
            LanceRetryableError: the metastore or the storage is unavailable.
        """
        from lance_namespace.errors import TableTagNotFoundError

        from airflow_provider_lancens.hooks.tags import check_tag
        from airflow_provider_lancens.spark.table.version_lookup import find_version

        table, tag = parse_table(self.table), check_tag(self.bookmark)
        with self.connected(f"finding changes of table {str(table)!r}") as namespace:
            newest = self.hook.table_status(table).version
            try:
                previous = find_version(namespace, table, tag=tag) if newest else None
            except TableTagNotFoundError:
                previous = None
        if newest == (previous or 0):
            raise AirflowSkipException(f"table {str(table)!r} has no version after {previous}")
        self.log.info("Table %s: versions after %s, up to %d", table, previous, newest)
        return {"table": str(table), "previous_version": previous, "version": newest}
