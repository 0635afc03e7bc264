"""Drop columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit.schema_commits import SchemaStep
from airflow_provider_lancens.spark.results import SchemaResult
from airflow_provider_lancens.spark.schema.column_changes import PlannedChange, change_columns, check_indices
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace


def drop_columns(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    columns: Sequence[str],
    *,
    drop_indices: bool = False,
) -> SchemaResult:
    """Drop columns of a table; one that doesn't exist counts as dropped, so the call can be repeated.

    Only metadata is written. Earlier versions still have the columns, and their bytes remain on the storage
    until a compaction and a clean-up of versions.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        columns: the columns.
        drop_indices: whether indices on the columns may be dropped with them; otherwise they are refused.

    Returns:
        The version without the columns.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidInputError: (13) these are all columns of the table, or an index covers one of them.
        ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
        ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
        InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
    """
    if isinstance(columns, str) or not columns:
        raise spec_errors.InvalidInputError(f"columns: expected a list of columns, got {columns!r}")
    return change_columns(namespace, table, _Drops(tuple(columns), drop_indices))


@dataclass(frozen=True, slots=True)
class _Drops:
    columns: Sequence[str]
    drop_indices: bool

    def plan(self, table: str, latest: LanceDataset) -> PlannedChange:
        present = [name for name in dict.fromkeys(self.columns) if name in latest.schema.names]
        if not present:
            return PlannedChange([])
        if len(present) == len(latest.schema.names):
            raise spec_errors.InvalidInputError(
                f"table {table}: columns: {', '.join(present)} are all of its columns; drop the table instead"
            )
        why, paths = f"dropping {', '.join(present)}", [(name,) for name in present]
        dropped = check_indices(table, latest, paths, drop_indices=self.drop_indices, why=why)
        step = SchemaStep(f"drops {', '.join(present)}", lambda opened: opened.drop_columns(present))
        return PlannedChange([step], present, dropped)
