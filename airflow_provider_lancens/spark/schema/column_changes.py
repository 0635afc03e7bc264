"""Changes of a table's columns that are made on their own, without rows and without Spark.

A change is idempotent by state: what is already so needs no commit, so it can be repeated at any time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits, SchemaStep
from airflow_provider_lancens.spark.results import SchemaResult
from airflow_provider_lancens.spark.schema.alterations import indices_over
from airflow_provider_lancens.spark.schema.merge_plan import Path, shown
from airflow_provider_lancens.spark.table.described_columns import describe_columns
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.write.column_names import check_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)


class PlannedChange(NamedTuple):
    """What is left of a change at a version."""

    steps: Sequence[SchemaStep]
    """Each is one commit; after it the rest is planned again."""
    columns: Collection[str] = ()
    """The columns to change, by their names afterwards."""
    dropped_indices: Collection[str] = ()


class ColumnChange(Protocol):
    """A change of a table's columns."""

    def plan(self, table: str, latest: LanceDataset) -> PlannedChange:
        """Return what is left to do at a version, or raise why it can't be done, before anything is done."""


def change_columns(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, change: ColumnChange
) -> SchemaResult:
    """Make a change of a table's columns; see `add_columns` for its errors."""
    started = time.monotonic()
    with resolved_table(namespace, table) as target:
        latest = _written(target)
        before, planned = latest.version, change.plan(str(target.id), latest)
        commits = SchemaCommits(target)
        changed = commits.run(lambda newest: _first(change.plan(str(target.id), newest).steps), latest)
        committed = bool(commits.made)
        if committed:
            describe_columns(target, changed.schema)
        result = SchemaResult(
            table=str(target.id),
            version=changed.version,
            previous_version=before if committed else changed.version,
            columns=tuple(planned.columns) if committed else (),
            dropped_indices=tuple(planned.dropped_indices) if committed else (),
            seconds=round(time.monotonic() - started, 3),
            committed=committed,
        )
    _report(result, commits)
    return result


def check_new_schema(table: str, schema: pa.Schema, new: Iterable[str]) -> None:
    """Check the names of new columns.

    Args:
        table: the table's identifier, for messages.
        schema: all columns as they are to be.
        new: those with new names.

    Raises:
        InvalidInputError: (13) Lance can't store a name, or it differs from another one only in case.
    """
    check_columns(table, schema)
    spellings = [name.lower() for name in schema.names]
    if alike := [name for name in new if spellings.count(name.lower()) > 1]:
        raise spec_errors.InvalidInputError(
            f"table {table}: {', '.join(alike)}: another column differs from it only in case; choose "
            "another name"
        )


def check_indices(
    table: str, latest: LanceDataset, paths: Collection[Path], *, drop_indices: bool, why: str
) -> list[str]:
    """Return the names of the indices on columns that are changed, if they may be dropped.

    Raises:
        InvalidInputError: (13) there are some, and they may not be dropped.
    """
    indices = indices_over(latest, paths)
    if indices and not drop_indices:
        names = ", ".join(f"{name} ({shown(path)})" for name, path in indices)
        raise spec_errors.InvalidInputError(
            f"table {table}: {why} would drop the indices {names}; pass drop_indices=True if that is "
            "intended, and create them again afterwards"
        )
    return sorted({name for name, _ in indices})


def missing_column(
    table: str, argument: str, name: str, schema: pa.Schema
) -> spec_errors.TableColumnNotFoundError:
    """Return the error for a column that doesn't exist."""
    return spec_errors.TableColumnNotFoundError(
        f"table {table}: {argument}: column {name!r} does not exist; columns: {schema.names}"
    )


def _written(target: ResolvedTable) -> LanceDataset:
    latest = target.open_latest()
    if latest is None:
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id} is declared, but nothing has been written to it yet"
        )
    return latest


def _first(steps: Sequence[SchemaStep]) -> SchemaStep | None:
    return steps[0] if steps else None


def _report(result: SchemaResult, commits: SchemaCommits) -> None:
    if not commits.made:
        _log.info("table %s: nothing to change in its columns at version %d", result.table, result.version)
    for version, change in commits.made:
        _log.info("table %s: version %d changed the columns: %s", result.table, version, change)
    if result.dropped_indices:
        names = ", ".join(result.dropped_indices)
        _log.warning("table %s: dropped the indices %s", result.table, names)
