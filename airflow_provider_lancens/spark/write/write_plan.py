"""The two phases of a write, before and after the executors write its fragments.

The two phases may run in different driver processes. How the executors are run is independent of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition, parse_condition
from airflow_provider_lancens.spark.blobs.blob_columns import check_format, with_blobs
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.replace_where import ReplaceWhere
from airflow_provider_lancens.spark.commit.replacement import check_same_condition, replacing
from airflow_provider_lancens.spark.commit.table_changes import (
    KINDS,
    Append,
    Overwrite,
    TableChange,
    already_exists,
)
from airflow_provider_lancens.spark.commit.upsert import Upsert, check_keys, comparable_keys, read_keys
from airflow_provider_lancens.spark.keys import Counts, KeyAttempts, KeyedCommit, KeyedWrite, KeyLookup
from airflow_provider_lancens.spark.options import WriteRequest
from airflow_provider_lancens.spark.publish.stage import stage
from airflow_provider_lancens.spark.publish.staged_versions import ChangeSpec
from airflow_provider_lancens.spark.read.table_reader import parse_filter
from airflow_provider_lancens.spark.table.dataset_ref import small_manifest
from airflow_provider_lancens.spark.table.described_columns import describe_columns
from airflow_provider_lancens.spark.write.batch_sizing import BATCH_BYTES
from airflow_provider_lancens.spark.write.column_names import check_columns
from airflow_provider_lancens.spark.write.executor_tasks import WriteTask
from airflow_provider_lancens.spark.write.row_changes import KeptColumns, decoded_keys
from airflow_provider_lancens.spark.write.row_digest import combined_digest
from airflow_provider_lancens.spark.write.row_sources import FrameRows
from airflow_provider_lancens.spark.write.schema_check import mismatches, schema_mismatch
from airflow_provider_lancens.spark.write.schema_merge import merged_columns
from airflow_provider_lancens.spark.write.schema_overwrite import overwrite_mismatch, report_overwrite

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset
    from lance.schema import LanceSchema

    from airflow_provider_lancens.spark.commit.write_lease import WriteLease
    from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.row_sources import Columns, Written

_KINDS: dict[str, type[TableChange]] = {**KINDS, "upsert": Upsert}


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A planned write, to be committed once its fragments are written. Picklable."""

    request: WriteRequest
    write: KeyedWrite
    looked_up_to: int
    """The version up to which the history doesn't contain the key."""
    kind: Callable[..., TableChange]
    base: int | None
    """The newest version when it was planned; None if there was no dataset."""
    task: WriteTask
    """The task for the executors."""
    written_for: LanceSchema | None = None
    """The columns of `base` with their field ids."""

    @classmethod
    def of(cls, lookup: KeyLookup, columns: Columns) -> Self:
        """Plan a write that isn't committed yet.

        Raises:
            TableAlreadyExistsError: (5) `create`, and the dataset exists.
            InvalidInputError: (13) the rows can't be stored, or what they are to replace can't be replaced.
            TableSchemaValidationError: (20) the columns don't fit those of the table, and the write may not
                replace them.
        """
        base, request = lookup.latest, lookup.request
        if base is None and not request.publish:
            raise spec_errors.InvalidInputError(
                f"table {lookup.target.id}: publish=False: nothing has been written to it yet, and its first "
                "version can't be staged; publish a first version, which may have no rows"
            )
        kind: Callable[..., TableChange] = _KINDS[request.mode]
        task = _task(lookup, columns)
        if task.condition is not None:
            # Also in place of earlier commits under the key, whose rows match the condition.
            if base is not None and lookup.replaced:
                table = str(lookup.target.id)
                check_same_condition(task.condition.lance_sql, base, lookup.replaced, table)
            kind = partial(ReplaceWhere, condition=task.condition.lance_sql)
        elif base is not None and (lookup.replaced or request.mode == "create"):
            kind = _kind_onto(lookup, base)
        return cls(
            request=request,
            write=lookup.write,
            looked_up_to=lookup.version,
            kind=kind,
            base=None if base is None else base.version,
            task=task,
            written_for=None if base is None else base.lance_schema,
        )

    def commit(
        self,
        target: ResolvedTable,
        written: Written,
        lease: WriteLease,
        attempts: KeyAttempts | None = None,
    ) -> CommitOutcome:
        """Commit or stage what the executors wrote; an append of no rows commits nothing.

        Args:
            target: the table.
            written: the results of the executors.
            lease: the lease of this write.
            attempts: the attempts to commit, as this driver began them before the executors.

        Raises:
            InvalidInputError: (13) the rows of an upsert have null or duplicate keys.
            ConcurrentModificationError: (14) it conflicts with other commits.
        """
        from lance import FragmentMetadata

        if self.kind in (Append, Upsert) and self.base is not None and not written:
            return CommitOutcome(KeyedCommit(self.base), made_here=False)
        counts = Counts(*(sum(row[name] for row in written) for name in ("rows", "files", "bytes")))
        fragments = [FragmentMetadata.from_json(row["fragment"]) for row in written if row["fragment"]]
        kind = self.kind
        if self.request.on:
            encoded = [row["deleted"] for row in written if row["deleted"] is not None]
            deleted = decoded_keys(encoded, self.key_columns) if encoded else None
            keys = self._keys(target, fragments, lease, deleted)
            kind = partial(
                kind,
                keys=keys,
                compared=self.request.compares_rows,
                deletions=None if deleted is None else comparable_keys(deleted),
            )
        change = kind(
            table=str(target.id),
            base=self.base,
            schema=self.task.schema,
            fragments=fragments,
            written_for=self.written_for,
        )
        write = self.write
        if self.request.digest_rows:
            write = replace(write, fingerprint=digest_of(written))
            attempts = None if attempts is None else replace(attempts, write=write)
        if not self.request.publish:
            return stage(target, write, change, counts, self._change_spec(change), lease)
        stable_row_ids = self.request.options.enable_stable_row_ids
        committer = Committer(target, write, counts, stable_row_ids, lease, attempts)
        outcome = committer.commit(change, self.looked_up_to)
        if isinstance(change, Overwrite) and outcome.made_here:
            report_overwrite(target, outcome.commit.version)
        if outcome.made_here and (self.base is None or self.request.schema_mode != "strict"):
            describe_columns(target, self.task.schema)
        return outcome

    def _change_spec(self, change: TableChange) -> ChangeSpec:
        condition = change.condition if isinstance(change, ReplaceWhere) else None
        on, compared = tuple(self.request.on or ()), self.request.compares_rows
        return ChangeSpec(self.request.mode, self.base or 0, on, compared, condition)

    @property
    def key_columns(self) -> pa.Schema:
        """The key columns of an upsert."""
        return pa.schema([self.task.schema.field(name) for name in self.request.on or ()])

    def _keys(
        self,
        target: ResolvedTable,
        fragments: Sequence[FragmentMetadata],
        lease: WriteLease,
        deleted: pa.Table | None,
    ) -> pa.Table:
        with lease.explaining_missing_files():
            return read_keys(
                self.task.dataset,
                fragments,
                self.key_columns,
                deleted,
                str(target.id),
                compared=None if self.task.kept is None else self.task.kept.open(),
            )


def _kind_onto(lookup: KeyLookup, base: LanceDataset) -> Callable[..., TableChange]:
    """Return the kind of a change that replaces earlier commits under its key, or creates the dataset."""
    request, table = lookup.request, str(lookup.target.id)
    if not lookup.replaced:
        raise already_exists(table, base.version)
    return replacing(request.mode, base, lookup.replaced, table)


def _task(lookup: KeyLookup, columns: Columns) -> WriteTask:
    base, request = lookup.latest, lookup.request
    table, dataset = str(lookup.target.id), lookup.target.dataset
    keeps_rows = request.mode in ("append", "upsert") or request.replace_where is not None
    adds_rows = base is not None and keeps_rows
    merges = base is not None and request.schema_mode == "merge"
    vectors = None if adds_rows or merges else request.options.vector_columns
    kept = None if base is None or request.replaces_schema else base.schema
    schema, match = columns.schema(dataset.storage_options, vectors, kept), None
    if not (adds_rows or merges):
        schema = with_blobs(schema, request.options.blob_columns)
    if base is not None and merges:
        plan = merged_columns(request, schema, base, columns, table)
        schema, match = plan.schema, plan.match
    elif base is None or (schema != base.schema and request.replaces_schema):
        check_columns(table, schema)
    else:
        if schema != base.schema and (
            reasons := mismatches(schema, base.schema, time_zone_known=columns.time_zone_known)
        ):
            if not adds_rows:
                raise overwrite_mismatch(table, schema, base)
            raise schema_mismatch(table, reasons, may_merge=True)
        schema = base.schema
    if request.on:
        check_keys(request.on, schema, table)
    compared = columns if isinstance(columns, FrameRows) else None
    keys = pa.schema([schema.field(name) for name in request.on or ()])
    kept = None if compared is None else compared.kept
    return WriteTask(
        dataset=dataset,
        schema=schema,
        appends_to=base.version if base is not None and adds_rows else None,
        max_rows_per_file=request.options.max_rows_per_file,
        manifest=small_manifest(base) if base is not None and adds_rows else None,
        data_storage_version=base.data_storage_version
        if base is not None and adds_rows
        else _format(schema, request, base),
        condition=_replaced(lookup, schema),
        match=match,
        deletes=keys if compared is not None and compared.deletes else None,
        kept=None if kept is None or base is None else _kept(dataset, base, kept.names),
        digests=request.digest_rows,
    )


def digest_of(written: Written) -> str:
    """Return the digest of all rows of a write whose tasks digested theirs, see `row_digest`."""
    return combined_digest(row["digest"] for row in written if row["digest"] is not None)


def _kept(dataset: DatasetRef, base: LanceDataset, names: Sequence[str]) -> KeptColumns:
    fragments = [fragment.metadata for fragment in base.get_fragments()]
    rows = sum(fragment.physical_rows for fragment in fragments)
    size = sum(file.file_size_bytes or BATCH_BYTES for fragment in fragments for file in fragment.files)
    at_once = max(1, BATCH_BYTES * rows // max(size, 1))
    return KeptColumns(names, dataset, base.version, at_once, small_manifest(base))


def _format(schema: pa.Schema, request: WriteRequest, base: LanceDataset | None) -> str | None:
    """Return the file format; a commit can't change that of a dataset, so an overwrite keeps it too."""
    if base is None:
        return check_format(schema, request.options.data_storage_version, "data_storage_version")
    return check_format(schema, base.data_storage_version, "blob_columns: the table's file format")


def _replaced(lookup: KeyLookup, schema: pa.Schema) -> Condition | None:
    """Return the condition on the rows to replace, which the new ones must match too; None replaces all."""
    text = lookup.request.replace_where
    if text is None:
        return None
    condition = parse_condition(text, schema, f"table {lookup.target.id}: replace_where")
    if lookup.latest is not None:  # which may lack columns that the new rows bring
        parse_filter(lookup.target, lookup.latest, text, "replace_where")
    return condition
