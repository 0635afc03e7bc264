"""Merge the columns of rows into those of the table that they are written to, before they are written.

An append and an upsert change the table's columns by commits of their own. If the driver is interrupted after
them, the table has new columns without values, and the next run of the write finds them. An overwrite
replaces the columns in the same commit as the rows.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_lancens.spark.blobs.blob_columns import check_format, with_blobs
from airflow_provider_lancens.spark.commit.replacement import replacing
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits, SchemaStep
from airflow_provider_lancens.spark.commit.upsert import check_keys
from airflow_provider_lancens.spark.schema.alterations import alter, file_format, indices_over
from airflow_provider_lancens.spark.schema.merge_plan import MergePlan, merge_plan, shown
from airflow_provider_lancens.spark.types import with_vectors
from airflow_provider_lancens.spark.write.column_names import check_columns
from airflow_provider_lancens.spark.write.schema_check import schema_mismatch

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace.errors import TableSchemaValidationError

    from airflow_provider_lancens.spark.keys import KeyLookup
    from airflow_provider_lancens.spark.options import WriteRequest
    from airflow_provider_lancens.spark.write.row_sources import Columns

_log = logging.getLogger(__name__)


def with_merged_columns(lookup: KeyLookup, columns: Columns) -> KeyLookup:
    """Commit the columns and types that the rows have and the table lacks, for a write that merges them.

    Args:
        lookup: the write, and the table at its newest version.
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
    base, request, table = lookup.latest, lookup.request, str(lookup.target.id)
    if base is None or request.overwrites_all:
        return lookup
    replaces_rows = bool(lookup.replaced) and request.replace_where is None
    if replaces_rows:
        replacing(request.mode, base, lookup.replaced, table)
    rows = columns.schema(lookup.target.dataset.storage_options, table=base.schema)

    def next_step(latest: LanceDataset) -> SchemaStep | None:
        plan = merged_columns(request, rows, latest, columns, table)
        check_keys(key_columns(request, plan), plan.schema, table)
        if plan.widenings and replaces_rows:
            raise _not_widened(plan, table, "the rows to replace could no longer be identified")
        return _next_step(plan, latest, table)

    commits = SchemaCommits(lookup.target)
    latest = commits.run(next_step, base)
    for version, change in commits.made:
        _log.info("table %s: version %d changed the columns: %s", table, version, change)
    plan = merged_columns(request, rows, latest, columns, table)
    on = key_columns(request, plan) if request.on else None
    return replace(lookup, latest=latest, request=replace(request, on=on))


def merged_columns(
    request: WriteRequest, rows: pa.Schema, base: LanceDataset, columns: Columns, table: str
) -> MergePlan:
    """Return how to merge the columns of rows into those of a table.

    Args:
        request: how the rows are to be written.
        rows: the schema of the rows.
        base: the table.
        columns: the columns of the rows.
        table: the table's identifier, for messages.

    Raises:
        InvalidInputError: (13) a column's name or type can't be stored.
        TableSchemaValidationError: (20) the columns can't be merged.
    """
    check_columns(table, rows)
    plan = merge_plan(
        _with_new_types(request, rows, base.schema, match_case=columns.match_case),
        base.schema,
        match_case=columns.match_case,
        time_zone_known=columns.time_zone_known,
        **({} if request.overwrites_all else {"file_format": file_format(base)}),
    )
    check_format(plan.schema, base.data_storage_version, "blob_columns: the table's file format")
    sources = plan.match.sources
    missing = [name for name in key_columns(request, plan) if name not in sources]
    reasons = [*plan.reasons, *(f"{name}, a key column, is missing in the rows" for name in missing)]
    if reasons:
        raise schema_mismatch(table, reasons)
    return plan


def key_columns(request: WriteRequest, plan: MergePlan) -> list[str]:
    """Return the key columns of an upsert by the table's names; they may be given by those of the rows."""
    if plan.match.match_case:
        return list(request.on or ())
    names = {name.lower(): name for name in plan.schema.names}
    return [names.get(name.lower(), name) for name in request.on or ()]


def _with_new_types(
    request: WriteRequest, rows: pa.Schema, table: pa.Schema, *, match_case: bool
) -> pa.Schema:
    """Return the rows' schema with the new vectors and blobs as requested; the table's are as they are."""
    names = table.names if match_case else [name.lower() for name in table.names]

    def is_new(name: str) -> bool:
        return (name if match_case else name.lower()) not in names

    options = request.options
    vectors = {name: size for name, size in options.vector_columns.items() if is_new(name)}
    rows = with_vectors(rows, vectors) if vectors else rows
    return with_blobs(rows, [name for name in options.blob_columns if is_new(name)])


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
