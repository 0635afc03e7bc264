"""Inputs and outputs of a task, as plain data that is kept after its write.

Airflow's OpenLineage provider asks an operator for its datasets in a fork of the task's process, in which
Lance is not safe to use. So the columns are read before. Nothing is read if the provider isn't installed, or
is disabled.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from airflow_provider_lancens.assets.lineage import DatasetName, name_of_table
from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.identifiers import TableId, staged_number
from airflow_provider_lancens.redaction import redact

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.spark.options import WriteRequest
    from airflow_provider_lancens.spark.results import ComputeResult, StreamResult, WriteResult

_PROVIDER = "airflow.providers.openlineage"
_log = logging.getLogger(__name__)

Lifecycle = Literal["CREATE", "OVERWRITE", "ALTER"]


class WriteCounts(NamedTuple):
    """What a task wrote to a table."""

    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """Where the values of a written column come from."""

    columns: Sequence[str]
    """The columns that the values come from, in the table or files that the task read."""
    is_copy: bool
    """Whether it has the unchanged values of one column."""


@dataclass(frozen=True, slots=True)
class TableWrite:
    """What a task did to a table."""

    table: TableId
    version: int | None
    """The version with its rows; None if the table has none yet."""
    previous_version: int | None
    committed: bool
    """Whether this run of the task made the version, rather than an earlier run."""
    published: bool = True
    counts: WriteCounts | None = None
    """None if the task wrote no rows."""
    deleted_rows: int | None = None
    lifecycle: Lifecycle | None = None
    columns: Sequence[str] | None = None
    """The columns that the task changed, if it changed only some; else None."""
    source_version: int | None = None
    """The restored or published version of the same table, whose rows the new version has."""
    derived: Mapping[str, DerivedColumn] = field(default_factory=dict)
    """How columns were derived, by column, as far as it is known."""

    @classmethod
    def of(cls, result: WriteResult | StreamResult | ComputeResult, **details: Any) -> Self:
        """Describe a write of rows or values by its result.

        Args:
            result: the result. What an earlier run wrote isn't counted again.
            details: further fields; the lifecycle only for a table that had data.
        """
        is_made = result.outcome in ("done", "staged")
        if is_made:
            details.setdefault("counts", WriteCounts(result.written, result.files, result.bytes))
            if result.previous_version is None:
                details["lifecycle"] = "CREATE"
        table = TableId.parse(result.table)
        staged = staged_number(getattr(result, "staged_version", None))
        return cls(table, result.version or staged, result.previous_version, is_made, **details)

    @classmethod
    def of_request(
        cls, result: WriteResult, request: WriteRequest, derived: Mapping[str, DerivedColumn]
    ) -> Self:
        """Describe an ingestion by its request and its result.

        Args:
            result: the result.
            request: how the rows were to be written.
            derived: where the values of columns come from.
        """
        overwrote = result.is_done and request.change.overwrites_all
        return cls.of(
            result,
            published=result.staged_version is None,
            lifecycle="OVERWRITE" if overwrote else None,
            columns=None if request.upsert is None else request.upsert.update_columns,
            derived=derived,
        )


@dataclass(frozen=True, slots=True)
class TableRead:
    """A version of a table, or what changed in it, that a task read."""

    table: TableId
    version: int
    reads_changes: bool = False
    after_version: int | None = None
    """The version before the first change, if changes were read; None if all rows are changes."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """Files that a task read."""

    path: str


@dataclass(frozen=True, slots=True)
class LineageColumn:
    """A column of a table, or a field of a struct."""

    name: str
    type: str
    fields: tuple[LineageColumn, ...] = ()

    @classmethod
    def of(cls, column: pa.Field) -> Self:
        """Describe a column; an extension type by its name, others as Arrow writes them."""
        import pyarrow as pa

        if isinstance(column.type, pa.BaseExtensionType):
            return cls(column.name, column.type.extension_name)
        if pa.types.is_struct(column.type):
            return cls(column.name, "struct", tuple(cls.of(field) for field in column.type))
        return cls(column.name, str(column.type))


@dataclass(frozen=True, slots=True)
class TaskLineage:
    """What a task read and wrote, with the names and the columns of the tables."""

    write: TableWrite
    reads: Sequence[TableRead | FileRead]
    names: Mapping[TableId, DatasetName]
    """Names of the tables, except tables that can't be identified with tables of other tools."""
    columns: Mapping[tuple[TableId, int], Sequence[LineageColumn]]
    """Columns by table and version, as far as they could be read."""
    assets: frozenset[str]
    """The URIs of the tables' assets."""

    @classmethod
    def noted(
        cls,
        hook: LanceHook,
        namespace: LanceNamespace,
        write: TableWrite,
        reads: Sequence[TableRead | FileRead] = (),
    ) -> Self | None:
        """Return the lineage of a task that has written, which a failure doesn't undo.

        Args:
            hook: the hook of the tables' connection.
            namespace: the namespace of the tables.
            write: what the task wrote.
            reads: what it read.

        Returns:
            None if OpenLineage is disabled or not installed, or if it failed.
        """
        try:
            return cls._of(hook, namespace, write, reads) if is_enabled() else None
        except Exception as error:  # noqa: BLE001 - the rows are committed, so the task must not fail
            _log.warning("OpenLineage: no lineage of table %s: %s", write.table, redact(str(error)))
            return None

    @classmethod
    def _of(
        cls,
        hook: LanceHook,
        namespace: LanceNamespace,
        write: TableWrite,
        reads: Sequence[TableRead | FileRead],
    ) -> Self:
        tables: list[TableRead | TableWrite] = [
            write,
            *(read for read in reads if isinstance(read, TableRead)),
        ]
        names = {used.table: name_of_table(hook, used.table) for used in tables}
        known = {table: name for table, name in names.items() if name is not None}
        wanted = {(used.table, used.version) for used in tables if used.table in known and used.version}
        found = {(table, version): _columns(namespace, table, version) for table, version in wanted}
        columns = {key: column for key, column in found.items() if column is not None}
        assets = frozenset(LanceTable.of(hook.asset_authority, table).uri for table in names)
        return cls(write, reads, known, columns, assets)


def is_enabled() -> bool:
    """Return whether Airflow's OpenLineage provider is installed and emits events."""
    if find_spec(_PROVIDER) is None:
        return False
    return not import_module(f"{_PROVIDER}.conf").is_disabled()


def _columns(namespace: LanceNamespace, table: TableId, version: int) -> Sequence[LineageColumn] | None:
    from airflow_provider_lancens.spark.table.resolved_table import resolved_table

    try:
        with resolved_table(namespace, table) as target:
            return [LineageColumn.of(column) for column in target.open(version).schema]
    except Exception as error:  # noqa: BLE001 - the rows are committed, so the task must not fail
        _log.warning(
            "OpenLineage: no schema of table %s at version %d, since its columns cannot be read: %s",
            table,
            version,
            redact(str(error)),
        )
        return None
