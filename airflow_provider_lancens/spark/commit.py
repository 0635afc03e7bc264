"""Commit a change exactly once, whoever else commits at the same time.

Look for the key up to the latest version, then make exactly the next version behind the fence. Had
another driver committed under the same key in between, it would have made that very version: so of
two drivers that are both alive, one finds the other's commit.
"""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass

from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens.namespace.writes import Write
from airflow_provider_lancens.spark import ledger
from airflow_provider_lancens.spark.changes import Change, Step
from airflow_provider_lancens.spark.fence import CommitFence
from airflow_provider_lancens.spark.history import Commit, Counts
from airflow_provider_lancens.spark.running import Running
from airflow_provider_lancens.spark.target import Target

_ATTEMPTS = 100
_LONGEST_PAUSE = 2.0  # seconds
_LANCE_ERRORS = (OSError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which commit holds the change, and whether this driver made it."""

    commit: Commit
    made_here: bool


@dataclass(frozen=True, slots=True)
class Committer:
    """All that one write needs for its commit, however often it must be tried."""

    target: Target
    key: str
    counts: Counts
    stable_row_ids: bool = False
    fingerprint: str = ""
    write: Running | None = None
    """The mark of this write; None where it leaves no files behind."""

    def commit(self, change: Change, looked_up_to: int = 0) -> Outcome:
        """Bring a change into the table, and let the table's entry remember it.

        Args:
            change: what to commit.
            looked_up_to: the newest version in whose history the key is known not to be.

        Raises:
            ConcurrentModificationError: (14) another commit leaves no room for it, or too many came
                in between.
            TableAlreadyExistsError: (5) `change` was to create the data set, and it exists.
            ServiceUnavailableError: (17) the storage or the metastore failed, and the commit isn't there.
        """
        outcome = self._settled(change, looked_up_to)
        ledger.remember(self.target, self.key, outcome.commit)
        return outcome

    def _settled(self, change: Change, looked_up_to: int) -> Outcome:
        own_uuid = str(uuid.uuid4())
        trouble: Exception | None = None
        for attempt in range(_ATTEMPTS):
            latest = self.target.open_latest()
            found = ledger.find(self.target, latest, self.key, after=looked_up_to)
            if found is not None:
                return Outcome(self._checked(found), made_here=found.uuid == own_uuid)
            if trouble is not None:
                self._check_alive()  # a clean-up may be where the trouble comes from
                raise trouble
            looked_up_to = 0 if latest is None else latest.version
            step = change.onto(latest)
            self._check_alive()
            commit = Commit(looked_up_to + 1, own_uuid, step.counts or self.counts, self.fingerprint)
            fence = CommitFence(self.target, seen=looked_up_to, write=self._to_remember(commit))
            if self._attempt(step, commit, fence):
                return Outcome(commit, made_here=True)
            trouble = fence.failure
            _pause(attempt)
        raise ConcurrentModificationError(
            f"table {self.target.id}: overtaken by {_ATTEMPTS} commits of others; "
            "nothing was committed, run it again"
        )

    def _attempt(self, step: Step, commit: Commit, fence: CommitFence) -> bool:
        """Whether the commit was made; where it is false, the fence knows why."""
        from lance import LanceDataset, Transaction

        properties = commit.counts.as_properties(self.key, self.fingerprint)
        transaction = Transaction(step.read_version, step.operation, commit.uuid, properties)
        try:
            LanceDataset.commit(
                self.target.dataset.location,
                transaction,
                read_version=step.read_version,
                storage_options=dict(self.target.dataset.storage_options),
                max_retries=0,
                enable_stable_row_ids=self.stable_row_ids,
                namespace_client=fence,
                table_id=self.target.parts,
                namespace_client_managed_versioning=True,
            )
        except _LANCE_ERRORS as error:
            # On a table that has moved on, an error is settled by looking again: before it asks the
            # fence, Lance may stumble over a version that it finds by path and that the fence hides.
            if fence.asked or (self.target.latest_version() or 0) != fence.seen:
                return False
            raise self._refusal(error) from error
        return True

    def _check_alive(self) -> None:
        if self.write is not None:
            self.write.check()

    def _checked(self, found: Commit) -> Commit:
        if found.brought(self.fingerprint):
            return found
        raise ConcurrentModificationError(
            f"table {self.target.id}: another driver committed other data under idempotency key {self.key!r} "
            f"as version {found.version} meanwhile; nothing was committed, run it again"
        )

    def _to_remember(self, commit: Commit) -> Write | None:
        return ledger.as_write(self.key, commit) if self.target.memory else None

    def _refusal(self, error: Exception) -> Exception:
        from lance.commit import CommitConflictError

        if not isinstance(error, CommitConflictError):
            return error
        return ConcurrentModificationError(
            f"table {self.target.id}: another commit came in between that this one can't follow; "
            f"nothing was committed, run it again ({error})"
        )


def _pause(attempt: int) -> None:
    # Random, so that drivers that collided once don't go on in step.
    time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.02 * 2**attempt)))  # noqa: S311 no secret
