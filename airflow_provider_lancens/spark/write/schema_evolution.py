"""Changes of a table's columns by written rows: merged before the rows are written, or by an overwrite."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS
from airflow_provider_lancens.spark.blobs import check_format, with_blobs
from airflow_provider_lancens.spark.commit.redo import redo_change
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits, SchemaStep
from airflow_provider_lancens.spark.commit.upsert import check_keys
from airflow_provider_lancens.spark.table.column_fit import (
    MergePlan,
    alter,
    check_columns,
    file_format,
    indices_over,
    merge_plan,
    schema_mismatch,
    shown,
    with_vectors,
)

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace.errors import TableSchemaValidationError

    from airflow_provider_lancens.spark.options import TableLayout, WriteRequest
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.row_sources import Columns
    from airflow_provider_lancens.spark.write.write_context import WriteContext


_log = logging.getLogger(__name__)


def with_merged_columns(context: WriteContext, columns: Columns) -> WriteContext:
    """Commit the columns and types that the rows have and the table lacks, for a write that merges them.

    Args:
        context: the write, and the table at its newest version.
        columns: the columns of the rows.

    Returns:
        The same with the newest version that has them, and with the key columns by the table's names; the
        idempotency key isn't looked up again.

    Raises:
        InvalidInputError: (13) a column's name or type can't be stored, a key column can't be one, or what
            the rows are to replace can't be replaced; nothing was changed.
        TableSchemaValidationError: (20) the columns can't be merged; nothing was changed.
        ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
    """
    base, request, table = context.latest, context.request, context.table
    if base is None or request.change.overwrites_all:
        return context
    replaces_rows = bool(context.replaced) and request.where is None
    if replaces_rows:
        redo_change(request.change.MODE, base, context.replaced, table)
    rows = columns.schema(context.target.dataset.storage_options, table=base.schema)

    def next_step(latest: LanceDataset) -> SchemaStep | None:
        plan = merged_columns(context, rows, latest, columns)
        check_keys(key_columns(request, plan), plan.schema, table)
        if plan.widenings and replaces_rows:
            raise _not_widened(plan, table, "the rows to replace could no longer be identified")
        return _next_step(plan, latest, table)

    commits = SchemaCommits(context.target, context.change.MODE)
    latest = commits.run(next_step, base)
    for version, change in commits.made:
        _log.info("table %s: version %d changed the columns: %s", table, version, change)
    plan = merged_columns(context, rows, latest, columns)
    context = context.at(latest)
    if request.upsert is None:
        return context
    return context.with_change(replace(request.upsert, on=key_columns(request, plan)))


def merged_columns(context: WriteContext, rows: pa.Schema, base: LanceDataset, columns: Columns) -> MergePlan:
    """Return how to merge the columns of rows into a table's columns.

    Args:
        context: the write.
        rows: the schema of the rows.
        base: the table.
        columns: the columns of the rows.

    Raises:
        InvalidInputError: (13) a column's name or type can't be stored.
        TableSchemaValidationError: (20) the columns can't be merged.
    """
    request, table = context.request, context.table
    check_columns(table, rows)
    plan = merge_plan(
        _with_new_types(context.layout_of(rows), rows, base.schema, match_case=columns.match_case),
        base.schema,
        match_case=columns.match_case,
        time_zone_known=columns.time_zone_known,
        **({} if request.change.overwrites_all else {"file_format": file_format(base)}),
    )
    check_format(plan.schema, base.data_storage_version, "blob_columns: the table's file format")
    sources = plan.match.sources
    missing = [name for name in key_columns(request, plan) if name not in sources]
    reasons = [*plan.reasons, *(f"{name}, a key column, is missing in the rows" for name in missing)]
    if reasons:
        raise schema_mismatch(table, reasons)
    return plan


def key_columns(request: WriteRequest, plan: MergePlan) -> list[str]:
    """Return the key columns of an upsert by the table's names; they may be given by the rows' names."""
    on = request.on
    if plan.match.match_case:
        return list(on)
    names = {name.lower(): name for name in plan.schema.names}
    return [names.get(name.lower(), name) for name in on]


def _with_new_types(layout: TableLayout, rows: pa.Schema, table: pa.Schema, *, match_case: bool) -> pa.Schema:
    """Return the rows' schema with the new vectors and blobs as requested; the table's are as they are."""
    names = table.names if match_case else [name.lower() for name in table.names]

    def is_new(name: str) -> bool:
        return (name if match_case else name.lower()) not in names

    vectors = {name: size for name, size in layout.vector_columns.items() if is_new(name)}
    rows = with_vectors(rows, vectors) if vectors else rows
    return with_blobs(rows, [name for name in layout.blob_columns if is_new(name)])


def _next_step(plan: MergePlan, latest: LanceDataset, table: str) -> SchemaStep | None:
    if plan.widenings:
        paths = [path for path, _, _ in plan.widenings]
        if indices := indices_over(latest, paths):
            names = ", ".join(f"{name} ({shown(path)})" for name, path in indices)
            raise _not_widened(plan, table, f"to widen them would invalidate the indices {names}")
        widened = replace(plan, added=[])
        return SchemaStep(
            str(widened), lambda opened: alter(opened, {path: new for path, _, new in plan.widenings})
        )
    if plan.additions:
        return SchemaStep(str(plan), lambda opened: opened.add_columns(pa.schema(plan.additions)))
    return None


def _not_widened(plan: MergePlan, table: str, reason: str) -> TableSchemaValidationError:
    types = [f"{shown(path)} is {new}, but {old} in the table" for path, old, new in plan.widenings]
    return schema_mismatch(table, [*types, reason])


def overwrite_mismatch(
    table: str, rows: pa.Schema, base: LanceDataset
) -> spec_errors.TableSchemaValidationError:
    """Return the error for an overwrite whose rows don't fit the existing columns.

    Args:
        table: the table's identifier, for the message.
        rows: the schema of the rows as Arrow.
        base: the current dataset.

    Returns:
        An error that names the columns that would be dropped, added or changed, and the indices that would
        be dropped.
    """
    indices = _index_names(base)
    lost = f"; it would drop the indices {', '.join(indices)}" if indices else ""
    changes = schema_changes(base.schema, rows)
    return spec_errors.TableSchemaValidationError(
        f"table {table}: an overwrite would change its columns: {changes}{lost}. Select, cast or rename "
        "the columns of the rows, or pass schema_mode='overwrite' to replace those of the table, or "
        "schema_mode='merge' to keep both"
    )


def report_overwrite(
    target: ResolvedTable, opened: LanceDataset | None, schema: pa.Schema, version: int
) -> None:
    """Log which columns and indices of the previous version a committed overwrite changed or dropped.

    Lance drops all indices of a dataset that is overwritten, even if its columns stay.

    Args:
        target: the table.
        opened: the dataset as it was opened for the overwrite; the version before it, if others committed
            meanwhile, is opened.
        schema: the columns that it has written.
        version: the version that the overwrite made.
    """
    if version == 1:
        return
    try:
        before = opened
        if before is None or before.version != version - 1:
            before = target.open(version - 1)
    except (*LANCE_ERRORS, spec_errors.LanceNamespaceError) as error:
        # It is committed, so logging must not fail it: the previous version may have been cleaned up.
        _log.warning(
            "table %s: cannot determine which columns version %d changed: %s", target.id, version, error
        )
        return
    if changes := schema_changes(before.schema, schema):
        _log.info("table %s: version %d changed the columns: %s", target.id, version, changes)
    if indices := _index_names(before):
        names = ", ".join(indices)
        _log.warning(
            "table %s: version %d dropped the indices %s with the rows they covered; create them again",
            target.id,
            version,
            names,
        )


def schema_changes(before: pa.Schema, after: pa.Schema) -> str:
    """Return the differences between two schemas, ignoring the order of columns; empty if there are none."""
    old = dict(zip(before.names, before.types, strict=True))
    new = dict(zip(after.names, after.types, strict=True))
    dropped = [name for name in old if name not in new]
    added = [f"{name} ({new[name]})" for name in new if name not in old]
    changed = [f"{n} from {old[n]} to {new[n]}" for n in old if n in new and old[n] != new[n]]
    parts = {"drops": dropped, "adds": added, "changes": changed}
    return "; ".join(f"{verb} {', '.join(names)}" for verb, names in parts.items() if names)


def _index_names(dataset: LanceDataset) -> list[str]:
    return [f"{index.name} ({', '.join(index.field_names)})" for index in dataset.describe_indices()]
