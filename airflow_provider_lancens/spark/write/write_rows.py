"""Write rows under an idempotency key, once: plan the write, write the fragments, commit them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition, parse_condition
from airflow_provider_lancens.identifiers import staged_name
from airflow_provider_lancens.spark.blobs import check_format, with_blobs
from airflow_provider_lancens.spark.commit.append_overwrite import (
    KINDS,
    AppendCommit,
    OverwriteCommit,
    ReplaceWhereCommit,
    already_exists,
)
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.redo import check_same_condition, redo_change
from airflow_provider_lancens.spark.commit.table_change import TableChange
from airflow_provider_lancens.spark.commit.upsert import (
    ReplaceValuesCommit,
    UpsertCommit,
    check_keys,
    comparable_keys,
    read_keys,
)
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, KeyAttempts, KeyedCommit, KeyedWrite, KeyLookup
from airflow_provider_lancens.spark.observed import Ended, notify, observed
from airflow_provider_lancens.spark.options import TableLayout, WriteRequest
from airflow_provider_lancens.spark.publish import ChangeSpec, discard_repeated, find_staged, stage
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.column_fit import (
    check_columns,
    mismatches,
    schema_mismatch,
    with_vectors,
)
from airflow_provider_lancens.spark.table.dataset_ref import small_manifest
from airflow_provider_lancens.spark.table.history import data_changed
from airflow_provider_lancens.spark.table.opened_version import parse_filter
from airflow_provider_lancens.spark.table.row_hashes import combined_digest
from airflow_provider_lancens.spark.write.batch_sizing import BATCH_BYTES
from airflow_provider_lancens.spark.write.row_sources import ArrowRows, FrameRows
from airflow_provider_lancens.spark.write.schema_evolution import (
    merged_columns,
    overwrite_mismatch,
    report_overwrite,
    with_merged_columns,
)
from airflow_provider_lancens.spark.write.task_progress import WriteProgress
from airflow_provider_lancens.spark.write.upsert_task import KeptColumns, decoded_keys
from airflow_provider_lancens.spark.write.write_context import UpsertContext, WriteContext
from airflow_provider_lancens.spark.write.write_task import WriteTask

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset
    from lance.schema import LanceSchema

    from airflow_provider_lancens.spark.commit.write_lease import WriteLease
    from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.row_sources import Columns, Rows, Written

_log = logging.getLogger(__name__)


_KINDS: dict[str, type[TableChange]] = {**KINDS, "upsert": UpsertCommit}


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A planned write, to be committed once its fragments are written. Picklable."""

    request: WriteRequest
    write: KeyedWrite
    looked_up_to: int
    """The version up to which commits under the key have been looked for."""
    kind: Callable[..., TableChange]
    base: int | None
    """The newest version when it was planned; None if there was no dataset."""
    task: WriteTask
    """The task for the executors."""
    written_for: LanceSchema | None = None
    """The columns of `base` with their field ids."""
    stable_row_ids: bool = False
    """Whether a new dataset's row ids survive compaction."""

    @classmethod
    def of(cls, context: WriteContext, columns: Columns) -> Self:
        """Plan a write that isn't committed yet.

        Raises:
            TableAlreadyExistsError: (5) `create`, and the dataset exists.
            InvalidInputError: (13) the rows can't be stored, or what they are to replace can't be replaced.
            TableSchemaValidationError: (20) the columns don't fit the table's columns, and the write may not
                replace them.
        """
        base, request = context.latest, context.request
        if request.change.stage and request.change.MODE == "append" and context.replaced:
            raise _published_append(context)
        if base is None and request.change.stage:
            raise spec_errors.InvalidInputError(
                f"table {context.table}: stage=True: nothing has been written to it yet, and its first "
                "version can't be staged; publish a first version, which may have no rows"
            )
        kind: Callable[..., TableChange] = _KINDS[request.change.MODE]
        task = _task(context, columns)
        if task.condition is not None:
            # Also in place of earlier commits under the key, whose rows match the condition.
            if base is not None and context.replaced:
                check_same_condition(task.condition.lance_sql, base, context.replaced, context.table)
            kind = partial(ReplaceWhereCommit, condition=task.condition.lance_sql)
        elif request.on and request.upsert is None:
            kind = ReplaceValuesCommit
        elif base is not None and (context.replaced or request.change.MODE == "create"):
            kind = _kind_onto(context, base)
        return cls(
            request=request,
            write=context.write,
            looked_up_to=context.lookup.version,
            kind=kind,
            base=None if base is None else base.version,
            task=task,
            written_for=None if base is None else base.lance_schema,
            stable_row_ids=context.layout.stable_row_ids,
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
            attempts: the attempts to commit, made before the executors write.

        Raises:
            InvalidInputError: (13) the rows of an upsert have null or duplicate keys.
            ConcurrentModificationError: (14) it conflicts with other commits.
        """
        from lance import FragmentMetadata

        adds = (AppendCommit, UpsertCommit, ReplaceValuesCommit)
        if self.kind in adds and self.base is not None and not written:
            return CommitOutcome(KeyedCommit(self.base), "unchanged")
        counts = Counts(*(sum(row[name] for row in written) for name in ("rows", "files", "bytes")))
        fragments = [FragmentMetadata.from_json(row["fragment"]) for row in written if row["fragment"]]
        kind = self.kind
        upsert = self.request.upsert
        if self.kind is ReplaceValuesCommit:
            kind = partial(kind, keys=self._keys(target, fragments, lease, None))
        elif upsert is not None:
            encoded = [row["deleted"] for row in written if row["deleted"] is not None]
            deleted = decoded_keys(encoded, self.key_columns) if encoded else None
            keys = self._keys(target, fragments, lease, deleted)
            kind = partial(
                kind,
                keys=keys,
                compared=upsert.compares_rows,
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
        if self.request.change.stage:
            return stage(target, write, change, counts, self._change_spec(change), lease)
        committer = Committer(target, write, counts, self.stable_row_ids, lease, attempts)
        outcome = committer.commit(change, self.looked_up_to)
        if isinstance(change, OverwriteCommit) and outcome.made_here:
            report_overwrite(
                target,
                None if attempts is None else attempts.opened(),
                self.task.schema,
                outcome.commit.version,
            )
        if outcome.made_here and (self.base is None or self.request.change.schema_mode != "strict"):
            target.update_catalog_columns(self.task.schema)
        return outcome

    def _change_spec(self, change: TableChange) -> ChangeSpec:
        condition = change.condition if isinstance(change, ReplaceWhereCommit) else None
        upsert, mode = self.request.upsert, self.request.change.MODE
        compared = upsert is not None and upsert.compares_rows
        on = tuple(self.request.on)
        return ChangeSpec(mode, self.base or 0, on, compared, condition, self.write.above)

    @property
    def key_columns(self) -> pa.Schema:
        """The columns by whose values rows of the table are replaced."""
        return _key_columns(self.request, self.task.schema)

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
                unique=self.request.upsert is not None,
            )


def _published_append(context: WriteContext) -> spec_errors.InvalidInputError:
    return spec_errors.InvalidInputError(
        f"table {context.table}: on_existing_key: version {context.replaced[0].version} was published under "
        f"idempotency key {context.write.key!r}, and an append with stage=True can't take the place of its "
        "rows; nothing was written. Stage an overwrite with where, which can be made again; or use "
        "on_existing_key='skip' to keep what was published, or 'write_again' to append once more"
    )


def _key_columns(request: WriteRequest, schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field(name) for name in request.on])


def _kind_onto(context: WriteContext, base: LanceDataset) -> Callable[..., TableChange]:
    """Return the kind of a change that replaces earlier commits under its key, or creates the dataset."""
    if not context.replaced:
        raise already_exists(context.table, base.version)
    return redo_change(context.change.MODE, base, context.replaced, context.table)


def _task(context: WriteContext, columns: Columns) -> WriteTask:
    base, request, change, layout = context.latest, context.request, context.change, context.layout
    table, dataset = context.table, context.target.dataset
    adds_rows = base is not None and change.adds_rows
    merges = base is not None and change.schema_mode == "merge"
    vectors = layout.vector_columns if base is None else None
    kept = None if base is None or change.replaces_schema else base.schema
    schema, match = columns.schema(dataset.storage_options, vectors, kept), None
    if base is None:
        schema = with_blobs(schema, layout.blob_columns)
    elif not (adds_rows or merges):
        present = context.layout_of(schema)
        schema = with_blobs(with_vectors(schema, present.vector_columns), present.blob_columns)
    if base is not None and merges:
        plan = merged_columns(context, schema, base, columns)
        schema, match = plan.schema, plan.match
    elif base is None or (schema != base.schema and change.replaces_schema):
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
    keys = _key_columns(request, schema)
    kept = None if compared is None else compared.kept
    return WriteTask(
        dataset=dataset,
        schema=schema,
        appends_to=base.version if base is not None and adds_rows else None,
        max_rows_per_file=layout.max_rows_per_file,
        manifest=small_manifest(base) if base is not None and adds_rows else None,
        data_storage_version=base.data_storage_version
        if base is not None and adds_rows
        else _format(schema, layout, base),
        condition=_replaced(context, schema),
        match=match,
        deletes=keys if compared is not None and compared.deletes else None,
        kept=None if kept is None or base is None else _kept(dataset, base, kept.names),
        digests=request.digest_rows,
    )


def digest_of(written: Written) -> str:
    """Return the digest of all rows of a write whose tasks digested their rows, see `row_hashes`."""
    return combined_digest(row["digest"] for row in written if row["digest"] is not None)


def _kept(dataset: DatasetRef, base: LanceDataset, names: Sequence[str]) -> KeptColumns:
    fragments = [fragment.metadata for fragment in base.get_fragments()]
    rows = sum(fragment.physical_rows for fragment in fragments)
    size = sum(file.file_size_bytes or BATCH_BYTES for fragment in fragments for file in fragment.files)
    at_once = max(1, BATCH_BYTES * rows // max(size, 1))
    return KeptColumns(names, dataset, base.version, at_once, small_manifest(base))


def _format(schema: pa.Schema, layout: TableLayout, base: LanceDataset | None) -> str | None:
    """Return the file format; a commit can't change a dataset's file format, so an overwrite keeps it too."""
    if base is None:
        return check_format(schema, layout.data_storage_version, "data_storage_version")
    return check_format(schema, base.data_storage_version, "blob_columns: the table's file format")


def _replaced(context: WriteContext, schema: pa.Schema) -> Condition | None:
    """Return the condition on the rows to replace, which the new rows must match too; None replaces all."""
    text = context.request.where
    if text is None:
        return None
    condition = parse_condition(text, schema, f"table {context.table}: where")
    if context.latest is not None:  # which may lack columns that the new rows bring
        parse_filter(context.target, context.latest, text, "where")
    return condition


def write_rows(rows: Rows, context: WriteContext) -> WriteResult:
    """Write rows of any kind, see `Table.append`; they aren't computed if the key was found.

    Args:
        rows: the rows.
        context: how to write them, the table, and what it contains under the key.
    """
    found = find_earlier_commit(context)
    return _write(rows, context) if found is None else found


def find_earlier_commit(context: WriteContext) -> WriteResult | None:
    """Return the result of an earlier run that has made or staged the write; None if it is to be made.

    Raises:
        InvalidInputError: (13) it is to be made, and lacks the fingerprint that its policy needs.
    """
    if context.earlier is not None:
        return skipped_write(context, context.earlier)
    if context.change.stage and (staged := staged_before(context.lookup)) is not None:
        notify(context.target.namespace, Ended(staged))
        return staged
    context.lookup.check_fingerprint()
    return None


@observed()
def _write(rows: Rows, context: WriteContext) -> WriteResult:
    _warn_of_older_values(context)
    target = context.target
    with storage_failures(target.dataset.location, target.dataset.storage_options):
        rows, context = _prepared(rows, context)
        plan = WritePlan.of(context, rows)
        with (
            KeyAttempts.started(target, context.write, context.latest) as attempts,
            acquire_lease(target.dataset).kept_alive(end=True) as lease,
        ):
            progress = WriteProgress(lease)
            with progress.logged():
                opened = attempts.opened() if isinstance(rows, ArrowRows) else None
                written = rows.write(replace(plan.task, progress=progress, opened=opened))
            outcome = plan.commit(target, written, lease, attempts)
    commit, key = outcome.commit, context.request.identity.key
    result = commit.result(target, context.lookup.started, outcome.outcome, key=key)
    if context.change.stage and outcome.outcome != "found":
        made = commit.version if outcome.made_here else None  # without rows, nothing is staged
        if key is not None:
            discard_repeated(target, context.write, made)
        if made is not None:
            result = _staged_result(replace(result, outcome="staged"), plan.base)
    return replace(result, operation=context.change.MODE)


def _warn_of_older_values(context: WriteContext) -> None:
    """Warn of an upsert that is made again and may write older values over newer ones."""
    upsert, earlier = context.request.upsert, context.repeated
    if upsert is None or earlier is None or upsert.sequence_by is not None or upsert.when_matched == "keep":
        return
    if context.latest is not None and data_changed(context.latest, since=earlier.version):
        _log.warning(
            "table %s: rows were changed since idempotency key %r wrote version %d; this upsert writes its "
            "values over newer ones of the same keys. With sequence_by, rows that are newer are kept",
            context.table,
            context.write.key,
            earlier.version,
        )


def _prepared(rows: Rows, context: WriteContext) -> tuple[Rows, WriteContext]:
    """Choose the rows of an upsert, and commit the columns that a write merges into the table's."""
    upsert = context.as_upsert()
    if upsert is not None and (isinstance(rows, FrameRows) or upsert.change.chooses_rows):
        return _compared(rows, upsert)
    return rows, with_merged_columns(context, rows) if context.change.schema_mode == "merge" else context


def _compared(rows: Rows, upsert: UpsertContext) -> tuple[Rows, WriteContext]:
    # It needs PySpark, which rows in memory don't.
    from airflow_provider_lancens.spark.write import upsert_rows

    if isinstance(rows, FrameRows):
        rows, upsert = upsert_rows.by_names_of_the_table(rows, upsert)
        upsert_rows.check_collations(rows, upsert)
    chosen = upsert_rows.frame_rows(rows, upsert) if upsert.change.chooses_rows else None
    context: WriteContext = upsert
    if upsert.change.schema_mode == "merge":
        stored = rows if chosen is None else upsert_rows.stored_columns(chosen, upsert)
        context = with_merged_columns(upsert, stored)
    merged = context.as_upsert()
    if chosen is not None and merged is not None:
        rows = upsert_rows.compared_rows(chosen, merged)
    return rows, context


def staged_before(lookup: KeyLookup) -> WriteResult | None:
    """Return the result of an earlier run that staged a write; None if there is none."""
    if lookup.latest is None or (staged := find_staged(lookup.target, lookup.write)) is None:
        return None
    result = _staged_result(lookup.found_result(staged.commit), staged.spec.base)
    _log.info("table %s: an earlier run has staged this write as %s", result.table, result.staged_version)
    return result


def _staged_result(result: WriteResult, base: int | None) -> WriteResult:
    """Return the result of a write that is staged: its version is no version of the table yet."""
    return replace(
        result, version=None, previous_version=base, staged_version=staged_name(result.version or 0)
    )


@observed()
def skipped_write(context: WriteContext, earlier: KeyedCommit) -> WriteResult:
    """Return the result of the earlier run, and log how to repeat the write if it is skipped."""
    result = context.lookup.found_result(earlier)
    if result.outcome != "skipped":
        return result
    _log.warning(
        "%s. Nothing was written, since idempotency key %r was committed before; on_existing_key='redo' "
        "writes in its place",
        result,
        context.write.key,
    )
    return result
