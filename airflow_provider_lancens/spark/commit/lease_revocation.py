"""Revoke the leases of writes that are presumed dead, so that none of them can commit any more.

A driver checks its lease after it has determined which version to create, and then creates exactly that
version. It may be suspended in between. So a revocation has three steps, and files are removed only after the
last one:

1. The revocation is recorded, so that another clean-up can finish it if this one is interrupted here.
2. The lease is removed: from now on every check fails.
3. A version that changes nothing is committed, the barrier. The version that a driver determined before step
   2 is at most the one after the newest at that time. It now exists: created by the barrier, by another
   writer, or by that driver, whose files are then among the files that versions refer to.

A driver that resumes later has its commit refused, retries, and finds its lease gone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.namespace.storage.write_leases import LeaseRecord
from airflow_provider_lancens.spark.commit.committer import pause
from airflow_provider_lancens.spark.commit.write_lease import REVOKED
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_log = logging.getLogger(__name__)

_PURPOSE = {"lancens.purpose": "revoke the leases of writes presumed dead"}
_ATTEMPTS = 10


def pending_revocations(files: TableFiles) -> list[str]:
    """Return the records of revoked leases whose barrier may not have been committed yet.

    Call after listing the leases: a lease that is gone by then has a record, or its barrier.
    """
    return [file.path for file in files.below(REVOKED)]


def revoke_leases(
    target: ResolvedTable, files: TableFiles, dead: Sequence[LeaseRecord], recorded: Sequence[str]
) -> bool:
    """Revoke leases, and return once none of their holders can commit any more.

    Args:
        target: the table, which must have a version.
        files: the files at its location.
        dead: the leases of writes that are presumed dead.
        recorded: the result of `pending_revocations`, called after these were listed.

    Returns:
        Whether there was anything to revoke, so that a barrier version exists.

    Raises:
        InvalidTableStateError: (19) metastore and storage disagree, so that no commit
            through the namespace is possible.
        ServiceUnavailableError: (17) metastore or storage failed; repeat the revocation before
            removing anything.
    """
    if not dead and not recorded:
        return False
    target.check_not_bypassed(target.latest_version() or 0)
    records = [f"{REVOKED}/{lease.path.rpartition('/')[2]}" for lease in dead]
    for record in records:
        files.put(record, b"")
    files.remove(*(path for lease in dead for path in lease.paths))
    version = _commit_barrier(target)
    files.remove_outdated(*records, *recorded)
    _log.info(
        "Table %s: %d writes are presumed dead; as of version %d, none of them can commit",
        target.id,
        len({*records, *recorded}),
        version,
    )
    return True


def _commit_barrier(target: ResolvedTable) -> int:
    """Commit a version that changes nothing; another writer's commit of that version has the same effect."""
    from lance import LanceOperation, Transaction

    from airflow_provider_lancens.spark.commit.single_version_commit import SingleVersionCommit

    seen = target.latest_version() or 0
    for attempt in range(_ATTEMPTS):
        fence = SingleVersionCommit(target.versions, None, target, seen)
        transaction = Transaction(seen, LanceOperation.UpdateConfig(), transaction_properties=_PURPOSE)
        try:
            fence.commit(transaction)
        except LANCE_ERRORS as error:
            if (latest := target.latest_version() or 0) > seen:
                return latest
            refusal = fence.error_of(error)
            if not isinstance(refusal, spec_errors.ConcurrentModificationError):
                raise refusal from error
            pause(attempt)  # the catalog table has changed, and its version hasn't
        else:
            return seen + 1
    raise spec_errors.ServiceUnavailableError(
        f"table {target.id}: other writers changed its catalog table in all {_ATTEMPTS} attempts, "
        "so the leases of writes presumed dead could not be revoked; nothing was removed, run it "
        "again"
    )
