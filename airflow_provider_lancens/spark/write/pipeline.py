"""Write rows under an idempotency key, once: plan the write, write the fragments, commit them.

The key was looked up before, see `spark.keys`. The kinds of rows are in `row_sources`, the phases of
a write in `write_plan`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.executor_failures import storage_failures
from airflow_provider_lancens.spark.keys import (
    KeyAttempts,
    KeyedCommit,
    KeyLookup,
    accept_lost,
    confirm_unknown,
    look_up,
)
from airflow_provider_lancens.spark.options import OnExistingKey, WriteRequest
from airflow_provider_lancens.spark.publish.staged_versions import find_staged
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.write.compared_rows import (
    by_names_of_the_table,
    check_collations,
    compared_rows,
    frame_rows,
    stored_columns,
)
from airflow_provider_lancens.spark.write.row_sources import FrameRows
from airflow_provider_lancens.spark.write.schema_merge import with_merged_columns
from airflow_provider_lancens.spark.write.task_progress import WriteProgress
from airflow_provider_lancens.spark.write.write_plan import WritePlan

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.write.row_sources import Rows

_log = logging.getLogger(__name__)


def write_rows(rows: Rows, lookup: KeyLookup) -> WriteResult:
    """Write rows of any kind, see `write_table`; they aren't computed if the key was found.

    Args:
        rows: the rows.
        lookup: how to write them, the table, and what it contains under the key.
    """
    if lookup.earlier is not None:
        return skipped_write(lookup, lookup.earlier)
    if not lookup.request.publish and (staged := staged_before(lookup)) is not None:
        return staged
    target = lookup.target
    with storage_failures(target.dataset.location, target.dataset.storage_options):
        if lookup.request.on and isinstance(rows, FrameRows):
            rows, lookup = by_names_of_the_table(rows, lookup)
            check_collations(rows, lookup)
        request = lookup.request
        chosen = frame_rows(rows, lookup) if request.on and request.chooses_rows else None
        if request.schema_mode == "merge":
            lookup = with_merged_columns(lookup, rows if chosen is None else stored_columns(chosen, lookup))
        if chosen is not None:
            rows = compared_rows(chosen, lookup)
        plan = WritePlan.of(lookup, rows)
        with (
            KeyAttempts.started(target, lookup.write, lookup.latest) as attempts,
            acquire_lease(target.dataset).kept_alive(end=True) as lease,
        ):
            progress = WriteProgress(lease)
            with progress.logged():
                written = rows.write(replace(plan.task, progress=progress))
            outcome = plan.commit(target, written, lease, attempts)
    result = outcome.commit.result(target.id, lookup.started, committed=outcome.made_here)
    if outcome.made_here and not request.publish:
        result = replace(result, previous_version=plan.base, published=False)
    return result


def find_write(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    idempotency_key: str,
    *,
    fingerprint: str | None = None,
    on_existing_key: OnExistingKey = "skip",
    execution_id: str | None = None,
) -> WriteResult | None:
    """Return the result of an earlier `write_table` under this key, without Spark.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        idempotency_key: the key.
        fingerprint: identifies the data that would be written now; None matches any.
        on_existing_key: what would be done if the key was committed, see `write_table`.
        execution_id: the same for all tries of one repetition, see `write_table`.

    Returns:
        The result of that call, with `committed` false; None if the write is still to be made.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) an argument is invalid, or that call had another fingerprint.
    """
    request = WriteRequest(  # in any mode
        "append", idempotency_key, fingerprint, on_existing_key, execution_id=execution_id
    )
    with resolved_table(namespace, table) as target:
        lookup = look_up(target, request)
        return None if lookup.earlier is None else lookup.found_result(lookup.earlier)


def confirm_write(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, idempotency_key: str
) -> None:
    """Record that the rows of a write under this key are in the table, where that can't be determined.

    Other clients cleaned up its version and all that would show whether it was committed, or whether others
    have undone it. Call this if its rows are in the table; the next run then skips the write.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        idempotency_key: the key.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) there is no write under the key whose outcome is unknown.
    """
    with resolved_table(namespace, table) as target:
        if not confirm_unknown(target, idempotency_key):
            raise spec_errors.InvalidInputError(
                f"table {target.id}: no write under idempotency key {idempotency_key!r} is in doubt, so "
                "there is nothing to confirm"
            )


def accept_lost_keys(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> None:
    """Let idempotency keys without records count as never committed, although records were lost.

    The records of keys, beside the data, were removed, and so were versions that would show what was
    committed; until this is called, writes under keys without records are refused. Call it if none of the
    keys that will run again is one of those versions', or if their rows may be written twice.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) no records of the table are known to be lost.
    """
    with resolved_table(namespace, table) as target:
        if not accept_lost(target):
            raise spec_errors.InvalidInputError(
                f"table {target.id}: no records of keys are known to be lost, so there is nothing to accept"
            )


def staged_before(lookup: KeyLookup) -> WriteResult | None:
    """Return the result of an earlier run that staged a write; None if there is none."""
    if lookup.latest is None or (staged := find_staged(lookup.target, lookup.write)) is None:
        return None
    result = staged.commit.result(lookup.target.id, lookup.started, committed=False)
    _log.info("table %s: an earlier run has staged this write as version %d", result.table, result.version)
    return replace(result, previous_version=staged.spec.base, published=False)


def skipped_write(lookup: KeyLookup, earlier: KeyedCommit) -> WriteResult:
    """Return the result of the earlier run, and log how to repeat the write if it is skipped."""
    result = lookup.found_result(earlier)
    if not result.skipped:
        return result
    again = "'write_again' does" if lookup.request.mode == "upsert" else "'replace' or 'write_again' does"
    _log.warning(
        "%s. Nothing was written, since idempotency key %r was committed before; on_existing_key=%s",
        result,
        lookup.write.key,
        again,
    )
    return result
