"""Clean-up: remove old versions, and the files that only they refer to. One process, without Spark."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.namespace.storage.version_tags import delete_abandoned_tags, list_tags
from airflow_provider_lancens.namespace.storage.write_leases import leases_of
from airflow_provider_lancens.spark.amounts import counted, size_of
from airflow_provider_lancens.spark.bookmarks.expire_bookmarks import expire_bookmarks
from airflow_provider_lancens.spark.commit.lease_revocation import pending_revocations, revoke_leases
from airflow_provider_lancens.spark.keys import maintain_keys
from airflow_provider_lancens.spark.maintenance.held_files import HeldFiles, held_by_tags
from airflow_provider_lancens.spark.maintenance.maintained_table import MaintainedTable, maintained
from airflow_provider_lancens.spark.maintenance.maintenance_options import DEFAULT_AGE, check_retention
from airflow_provider_lancens.spark.maintenance.maintenance_plan import Thresholds
from airflow_provider_lancens.spark.maintenance.maintenance_results import CleanUpResult
from airflow_provider_lancens.spark.maintenance.table_state import TableState, table_state
from airflow_provider_lancens.spark.maintenance.version_sweep import Removed, Retention, remove_versions
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)

_SAFE_AGE = timedelta(days=6)
"""Lance's clean-up keeps files younger than this: its limit is a week, and a clean-up takes time."""
_SILENCE = timedelta(days=1)
"""Time without a heartbeat after which a write is considered dead."""
_ABANDONED = timedelta(days=7)
"""Age of temporary tags that are deleted: later than the lease of a dead restore is revoked."""


def clean_up_versions(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    older_than: timedelta = DEFAULT_AGE,
    keep_versions: int = 1,
    keep_keys: timedelta | None = None,
    dry_run: bool = False,
    thresholds: Thresholds | None = None,
) -> CleanUpResult:
    """Remove old versions of a table, and the files that only they refer to.

    The newest version, young ones, the newest few and tagged ones are kept. If the metastore decides the
    versions, the newest is the one it records, and interrupted commits of it are finished first. Bookmarks
    whose ``expires_after`` has ended don't keep theirs any longer; that they expired is recorded before
    anything is removed. Unreferenced files are removed once they are a week old, not before: a writer may be
    about to commit them. A write that has been running for about that long stops the clean-up; one without a
    heartbeat for a day is considered dead, and a version that changes nothing is committed, so that it can't
    commit if it resumes.

    Idempotency keys outlive their versions. If `keep_keys` is given, older ones expire: a write under one is
    refused from then on.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        older_than: the age from which a version is removed; a reader without a tag has this much time.
        keep_versions: how many of the newest versions to keep, regardless of their age.
        keep_keys: the age from which an idempotency key expires; None keeps all.
        dry_run: only report what would be removed.
        thresholds: when a clean-up is due, decided by the table's metadata alone; None is always.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidInputError: (13) an argument is invalid.
        ConcurrentModificationError: (14) a write has been running for so long that its files could be
            removed; nothing was removed.
        ServiceUnavailableError: (17) the storage or the metastore failed; a part may have been removed.
        UnsupportedOperationError: (0) a symbolic link or another dataset is among the table's own files.
        InvalidTableStateError: (19) metastore and storage disagree on which version is the newest.
    """
    started = time.monotonic()
    _check(older_than, keep_versions, keep_keys)
    reason = ""
    if thresholds is not None and thresholds.limit_clean_up:
        with table_state(namespace, table) as state:
            decision = state.decide_clean_up(older_than, keep_versions, thresholds)
        if not decision.is_due:
            return not_cleaned_up(state, decision.reason, dry_run=dry_run)
        reason = decision.reason
    with maintained(namespace, table) as opened:
        expired_keys = 0
        now = opened.lease.began()
        if not dry_run:
            if _revoke_dead_writes(opened, now):
                opened = opened.at_newest()
                keep_versions += 1  # keep the previously newest version for its readers
            # Settles which keys were committed by the versions that may be removed.
            expired_keys = maintain_keys(
                opened.target, opened.dataset, None if keep_keys is None else now - keep_keys
            )
        bookmarks = _expire_bookmarks(opened, now, dry_run)
        tagged = _tagged(opened, bookmarks)
        removed = _clean_up(opened, Retention(older_than, keep_versions), now, dry_run)
        held = HeldFiles()
        if dry_run and bookmarks:
            held = held_by_tags(opened.target, opened.dataset, bookmarks, older_than, keep_versions)
        result = CleanUpResult(
            table=str(opened.target.id),
            version=opened.version,
            versions=removed.versions + held.versions,
            files=removed.files + held.files,
            bytes=removed.bytes + held.bytes,
            tagged=tagged,
            expired_keys=expired_keys,
            expired_bookmarks=bookmarks,
            seconds=round(time.monotonic() - started, 3),
            dry_run=dry_run,
            reason=reason,
        )
    _log.info("%s", _sentence(result))
    return result


def not_cleaned_up(state: TableState, reason: str, *, dry_run: bool = False) -> CleanUpResult:
    """Return the result where a clean-up isn't due."""
    return CleanUpResult(
        table=state.table,
        version=state.version,
        versions=0,
        files=0,
        bytes=0,
        tagged=0,
        seconds=0.0,
        dry_run=dry_run,
        cleaned_up=False,
        reason=reason,
    )


def _revoke_dead_writes(opened: MaintainedTable, now: datetime) -> bool:
    """Ensure that no write can commit files to be removed; return whether a version was committed for that.

    Lance removes unreferenced files by their age alone, even if a writer is about to commit them.
    """
    files = opened.lease.files
    long_running = [lease for lease in leases_of(files) if lease.began < now - _SAFE_AGE]
    records = pending_revocations(files)
    for lease in long_running:
        if lease.refreshed >= now - _SILENCE:
            raise spec_errors.ConcurrentModificationError(
                f"table {opened.target.id}: a write has been running since "
                f"{lease.began:%Y-%m-%d %H:%M} UTC, and its files older than a week would be "
                "removed; nothing was removed, run it again when that write has ended"
            )
    return revoke_leases(opened.target, files, long_running, records)


def _expire_bookmarks(opened: MaintainedTable, now: datetime, dry_run: bool) -> list[str]:
    files, table = opened.target.dataset.manifests, str(opened.target.id)
    expired = expire_bookmarks(opened.dataset, files, table, now, dry_run=dry_run)
    return [bookmark.name for bookmark in expired]


def _clean_up(opened: MaintainedTable, retention: Retention, now: datetime, dry_run: bool) -> Removed:
    _check_unlinked(opened)
    if dry_run:
        return Removed.of(retention.plan(opened.dataset).stats)
    delete_abandoned_tags(opened.dataset, now - _ABANDONED)
    files = opened.target.dataset.manifests
    return remove_versions(lambda: opened.at_newest().dataset, files, retention, opened.version, now)


def _check_unlinked(opened: MaintainedTable) -> None:
    # Lance lists all files below `data`, following links, and removes those its versions don't refer to.
    location = opened.target.dataset.location
    foreign = purge.first_foreign_path(location)
    if foreign is not None:
        raise spec_errors.UnsupportedOperationError(
            f"table {opened.target.id}: {foreign} is a symbolic link or another dataset inside "
            "the table's own, and a clean-up would delete its contents; move it out of the table's "
            "location first"
        )


def _tagged(opened: MaintainedTable, expired: Sequence[str]) -> int:
    tags = list_tags(opened.dataset).items()
    return len({tag["version"] for name, tag in tags if name not in expired} - {opened.version})


def _sentence(result: CleanUpResult) -> str:
    did = "would remove" if result.dry_run else "removed"
    return (
        f"table {result.table}: {did} {counted(result.versions, 'version')}, "
        f"{counted(result.files, 'file')}, {size_of(result.bytes)}; tags keep {result.tagged} older versions"
        + (f"; {result.expired_keys} idempotency keys expired" if result.expired_keys else "")
        + (f"; {len(result.expired_bookmarks)} bookmarks expired" if result.expired_bookmarks else "")
    )


def _check(older_than: timedelta, keep_versions: int, keep_keys: timedelta | None) -> None:
    try:
        check_retention(older_than, keep_versions, keep_keys=keep_keys)
    except ValueError as error:
        raise spec_errors.InvalidInputError(str(error)) from error
