"""Commit a change exactly once under concurrent writers.

Look for a commit under the key in the key's records, apply the change to the newest version, announce the
next version in these records, then create exactly that version through a `SingleVersionCommit` (the fence). A
driver that committed under the same key in between would have created the same version: of two live drivers
of one execution, one finds the other's commit; of two executions, one is refused, unless its policy takes the
other's commit for its own (`KeyedWrite.is_done_by`), or is to write again.

A commit whose reply was lost is looked for before the next attempt and after the last one, by the UUID of its
transaction: if it is found, the commit counts as made, otherwise the commit's error is raised.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import (
    LANCE_ERRORS,
    LancePanicError,
    is_conflict,
    panic_error,
)
from airflow_provider_lancens.spark.commit.table_change import CommitStep, TableChange
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.keys import Counts, KeyAttempts, KeyedCommit, KeyedWrite
from airflow_provider_lancens.spark.observed import ObservedCommit
from airflow_provider_lancens.spark.table.history import added_files
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.commit.single_version_commit import SingleVersionCommit

_ATTEMPTS = 100
_MAX_PAUSE = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The commit that holds a change."""

    commit: KeyedCommit
    outcome: Literal["done", "found", "unchanged"]
    """Whether this driver made it, another one did, or there was nothing to commit."""

    @property
    def made_here(self) -> bool:
        """Whether this driver made it."""
        return self.outcome == "done"


@dataclass(frozen=True, slots=True)
class Committer:
    """Commits one write, retrying as needed."""

    target: ResolvedTable
    write: KeyedWrite
    counts: Counts
    stable_row_ids: bool = False
    lease: WriteLease | None = None
    """The lease of this write; None if it writes no files."""
    attempts: KeyAttempts | None = None
    """The attempts to commit, as they were started before the write; None starts them now."""

    def commit(self, change: TableChange, looked_up_to: int = 0) -> CommitOutcome:
        """Commit a change to the table, with the records of its key.

        Args:
            change: what to commit.
            looked_up_to: the version up to which commits under the key have been looked for.

        Raises:
            ConcurrentModificationError: (14) it conflicts with another commit, or every attempt lost to one.
            StaleTableError: (14) the table was dropped, declared again or converted since it was resolved.
            TableAlreadyExistsError: (5) `change` creates the dataset, which already exists.
            ServiceUnavailableError: (17) the storage or the metastore failed, and nothing was committed.
        """
        from airflow_provider_lancens.namespace.error_types import StaleTableError
        from airflow_provider_lancens.spark.commit.single_version_commit import SingleVersionCommit

        attempts = self.attempts or KeyAttempts(self.target, self.write)
        failure: Exception | None = None
        observed = ObservedCommit.begin(self.target, KeyedCommit(0, kind=change.kind).operation)
        for attempt in range(_ATTEMPTS + 1):
            latest = self.target.open_latest(attempts.opened())
            found = attempts.find(latest, after=looked_up_to)
            if found is not None and found.uuid == attempts.uuid:  # the reply to this commit was lost
                return self._made(found, attempts, observed)
            if found is not None:
                return self._found(found)
            newest = 0 if latest is None else latest.version
            if attempt:
                self._check_retry(failure, newest, is_unchanged=newest == looked_up_to)
            if attempt == _ATTEMPTS:
                break
            looked_up_to, step = newest, change.apply_to(latest)
            counts = step.counts_with(self.counts)
            files = added_files(step.operation)
            commit = attempts.next_commit(newest + 1, counts, latest, kind=change.kind, files=files)
            with attempts.announcing(commit) as announcement:
                fence = SingleVersionCommit(
                    self.target.versions, self.lease, self.target, newest, announcement.result
                )
                is_made = self._attempt(step, commit, fence, latest)
            announcement.result()  # raises the error if the announcement failed, which refused the commit
            if is_made:
                return self._made(commit, attempts, observed)
            failure = fence.failure
            is_stale = isinstance(failure, StaleTableError)
            is_last = is_stale or attempt + 1 == _ATTEMPTS
            observed.lost(is_conflict=failure is None or is_stale, is_repeated=not is_last)
            if isinstance(failure, StaleTableError):
                raise failure
            pause(attempt)
        raise spec_errors.ConcurrentModificationError(
            f"table {self.target.id}: conflicted with other writers' commits in all {_ATTEMPTS} "
            "attempts; nothing was committed, run it again"
        )

    def _attempt(
        self, step: CommitStep, commit: KeyedCommit, fence: SingleVersionCommit, latest: LanceDataset | None
    ) -> bool:
        """Return whether the commit was made; if not, the fence holds the reason."""
        from lance import Transaction

        properties = commit.as_properties(self.write.key)
        transaction = Transaction(step.read_version, step.operation, commit.uuid, properties)
        try:
            fence.commit(transaction, latest, stable_row_ids=self.stable_row_ids)
        except LANCE_ERRORS as error:
            # If the table has a newer version, retry rather than raise: before it calls the fence, Lance
            # may fail on a version that it finds by path and that the fence hides.
            if fence.was_requested or (self.target.latest_version() or 0) != fence.base_version:
                return False
            # Lance's message doesn't explain a commit by a direct writer.
            self.target.check_not_bypassed(fence.base_version)
            raise self._refusal(error) from error
        return True

    def _check_retry(self, failure: Exception | None, newest: int, *, is_unchanged: bool) -> None:
        if self.lease is not None:
            # A clean-up may be the cause of the failure.
            self.lease.check(by_storage=self.target.dataset.version_authority is None)
        if failure is not None:
            raise failure
        if is_unchanged:
            self.target.check_not_bypassed(newest)  # no new version: a direct writer?

    def _made(self, commit: KeyedCommit, attempts: KeyAttempts, observed: ObservedCommit) -> CommitOutcome:
        attempts.conclude(commit)
        observed.made()
        if self.lease is not None:
            self.lease.unanswered.clear()  # requests that arrive late find that their version exists
        return CommitOutcome(commit, "done")

    def _found(self, found: KeyedCommit) -> CommitOutcome:
        if not self.write.is_done_by(found):
            raise spec_errors.ConcurrentModificationError(
                f"table {self.target.id}: meanwhile another run committed under idempotency key "
                f"{self.write.key!r} as version {found.version}; nothing was committed, run it again"
            )
        return CommitOutcome(found, "found")

    def _refusal(self, error: Exception) -> Exception:
        if isinstance(error, LancePanicError):
            return panic_error(error, f"table {self.target.id}: nothing was committed")
        if not is_conflict(error):
            return error
        return spec_errors.ConcurrentModificationError(
            f"table {self.target.id}: conflicts with a concurrent commit; nothing was committed, "
            f"run it again ({error})"
        )


def pause(attempt: int) -> None:
    """Wait before the next attempt, with exponential backoff and jitter."""
    # Random, so that drivers that conflicted don't retry at the same time.
    time.sleep(random.uniform(0, min(_MAX_PAUSE, 0.02 * 2**attempt)))  # noqa: S311 no secret
