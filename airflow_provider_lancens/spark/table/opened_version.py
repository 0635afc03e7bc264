"""A table opened at a version to be read: its columns, and conditions on its rows. Loads no PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition, parse_condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


def open_version(target: ResolvedTable, version: int | None) -> LanceDataset:
    """Open a table to read it.

    Args:
        target: the table.
        version: the version; None opens the newest.

    Raises:
        TableVersionNotFoundError: (11) it has no such version, or none at all yet.
    """
    if version is None:
        latest = target.open_latest()
        if latest is None:
            raise target.nothing_written()
        return latest
    return target.open(version, target.check_version(version))


def parse_filter(
    target: ResolvedTable, dataset: LanceDataset, text: str, argument: str = "filter"
) -> Condition:
    """Parse a condition on the rows of a table, and check that Lance takes it.

    Args:
        target: the table.
        dataset: the table, opened at a version.
        text: the condition, see docs/conditions.md.
        argument: what the caller calls it.

    Raises:
        InvalidInputError: (13) it is invalid; the message marks the place.
    """
    condition = parse_condition(text, dataset.schema, f"table {target.id}: {argument}")
    try:
        dataset.scanner(filter=condition.lance_sql).explain_plan()
    except (OSError, ValueError) as error:  # such as of a column with a backtick in its name
        raise spec_errors.InvalidInputError(
            f"table {target.id}: {argument}: Lance can't evaluate {text!r}: {error}"
        ) from error
    return condition


def projected_columns(
    target: ResolvedTable, schema: pa.Schema, columns: Sequence[str] | None, argument: str = "columns"
) -> pa.Schema:
    """Return the columns with these names, or all.

    Args:
        target: the table.
        schema: its columns.
        columns: the names; None is all.
        argument: what the caller calls them, for messages.

    Raises:
        TableColumnNotFoundError: (12) there is no such column, or the list is empty.
        InvalidInputError: (13) a column is listed twice, or it isn't a list.
    """
    if columns is None:
        return schema
    if isinstance(columns, str) or len(set(columns)) < len(columns):
        raise spec_errors.InvalidInputError(
            f"table {target.id}: {argument}: expected a list of names, each once, got {columns!r}"
        )
    present = frozenset(schema.names)
    missing = [name for name in columns if name not in present]
    if missing or not columns:
        raise spec_errors.TableColumnNotFoundError(
            f"table {target.id}: {argument}: expected names among {schema.names}, "
            f"got {missing or 'an empty list'}"
        )
    return pa.schema([schema.field(name) for name in columns])
