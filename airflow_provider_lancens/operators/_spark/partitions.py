"""The partitions of a task's asset event: the values of a column in the rows that its commit changed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.hooks.template_args import parse_text

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.spark.options import Change
    from airflow_provider_lancens.spark.results import WriteResult
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.row_sources import Columns

_log = logging.getLogger(__name__)


def check_partition_column(
    namespace: LanceNamespace, table: TableId, version: int, event_partitions: str | None
) -> None:
    """Check that a version has the column, before it is published.

    Raises:
        TableVersionNotFoundError: (11) there is no such version.
        TableColumnNotFoundError: (12) there is no such column.
    """
    from airflow_provider_lancens.spark.table.opened_version import open_version, projected_columns
    from airflow_provider_lancens.spark.table.resolved_table import resolved_table

    if column := parse_text(event_partitions):
        with resolved_table(namespace, table) as target:
            schema = open_version(target, version).schema
            projected_columns(target, schema, [column], "event_partitions")


def check_written_column(
    target: ResolvedTable, change: Change, rows: Columns | None, event_partitions: str | None
) -> None:
    """Check before a write that the version that it makes will have the column.

    Args:
        target: the table.
        change: what the write does.
        rows: the rows; None if another process reads them.
        event_partitions: the column, or an empty value: None, ``"None"`` or ``""``.

    Raises:
        TableColumnNotFoundError: (12) neither the rows nor the columns that the table keeps have it.
    """
    if (column := parse_text(event_partitions)) is None:
        return
    latest = target.open_latest()
    table = None if latest is None else latest.schema
    names = [] if table is None or change.replaces_schema else list(table.names)
    if not names or change.schema_mode != "strict":  # the rows may add columns
        if rows is None:
            return
        names += rows.schema(target.dataset.storage_options, table=table).names
    if column not in names:
        present = sorted({*names})
        raise spec_errors.TableColumnNotFoundError(
            f"table {target.id}: event_partitions: expected one of {present}, got {column!r}; nothing was "
            "written"
        )


def changed_partitions(
    namespace: LanceNamespace,
    result: WriteResult,
    event_partitions: str | None,
    *,
    is_own_version: bool = True,
) -> list[str] | None:
    """Return the values of a column in the rows that a commit wrote, replaced or deleted.

    Args:
        namespace: the opened namespace.
        result: the commit; it may have been made by an earlier run.
        event_partitions: the column, or an empty value: None, ``"None"`` or ``""``.
        is_own_version: whether a commit of the task made the version, now or earlier: a write without rows
            commits nothing.

    Returns:
        Sorted text; None without a column, or if the version or the previous version was cleaned up.

    Raises:
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) it has more than 1,000 values.
    """
    from lance_namespace.errors import TableVersionNotFoundError

    from airflow_provider_lancens.spark.changes.changed_values import changed_values

    column = parse_text(event_partitions)
    if column is None or result.version is None:
        return None
    if not is_own_version:
        return []
    after, version = result.previous_version, result.version
    try:
        return changed_values(namespace, result.table, column, after_version=after, version=version)
    except TableVersionNotFoundError as error:
        _log.warning("The partitions of version %d can't be determined any more: %s", version, error)
        return None
