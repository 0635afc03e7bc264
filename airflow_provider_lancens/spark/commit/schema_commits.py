"""Commits that change a table's columns, each of exactly the version after the version it was planned for.

Lance makes these commits itself, on a dataset that is opened through the fence of a `SingleVersionCommit`.
They are idempotent by state: the remaining changes are determined again from the newest version after each
commit and each conflict, until there are none. So a driver that was interrupted between two of them, or that
doesn't know whether one was made, just continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.lance_errors import (
    LANCE_ERRORS,
    LancePanicError,
    panic_error,
    panics_as_errors,
)
from airflow_provider_lancens.namespace.storage.storage_errors import is_storage_error
from airflow_provider_lancens.spark.commit.committer import pause
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.observed import ObservedCommit
from airflow_provider_lancens.spark.table.dataset_ref import VersionAuthority
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.commit.single_version_commit import SingleVersionCommit

_ATTEMPTS = 100
_INVALID = re.compile(r"^(Invalid user input|LanceError\((Arrow|Schema)\)|Received literal)")
_SOURCE_LINE = re.compile(r", \S+\.rs:\d+:\d+$")


class SchemaStep(NamedTuple):
    """A change of the columns that Lance makes in one commit."""

    description: str
    """What the step does, for messages: ``adds n (int64)``."""
    apply: Callable[[LanceDataset], object]
    """Makes the change, through a dataset that is opened at the version it was planned for."""


NextStep = Callable[["LanceDataset"], SchemaStep | None]
"""Returns what is to be done next at a version; None if the columns are as they are to be."""


@dataclass(slots=True)
class SchemaCommits:
    """Makes the commits of one change of the columns."""

    target: ResolvedTable
    operation: str = "change_columns"
    """The operation that is reported to an observer."""
    made: list[tuple[int, str]] = field(default_factory=list)
    """The versions that were made, with what each one does."""

    @property
    def versions(self) -> list[int]:
        """The versions that were made."""
        return [version for version, _ in self.made]

    def run(self, next_step: NextStep, latest: LanceDataset) -> LanceDataset:
        """Make all steps, and return the dataset at the version at which there is none left.

        Args:
            next_step: determines the next step; errors that it raises are raised here.
            latest: the dataset at its newest version, as far as the caller knows.

        Raises:
            InvalidInputError: (13) Lance refuses a step.
            ConcurrentModificationError: (14) every attempt lost to a commit of another writer.
            ServiceUnavailableError: (17) the storage or the metastore failed; run it again.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
        """
        step = next_step(latest)
        if step is None:
            return latest
        with ExitStack() as stack:
            # A step that converts or computes values writes files, which a clean-up must not remove.
            lease = stack.enter_context(acquire_lease(self.target.dataset).kept_alive(end=True))
            for attempt in range(_ATTEMPTS):
                if step is None:
                    return latest
                observed = ObservedCommit.begin(self.target, self.operation)
                base, is_made = latest.version, self._commit(step, latest.version, lease)
                if is_made is False:
                    observed.lost(is_conflict=True, is_repeated=attempt + 1 < _ATTEMPTS)
                    lease.check()
                    pause(attempt)
                latest = self._newest()
                following = next_step(latest)
                if is_made or (is_made is None and _text(following) != step.description):
                    self.made.append((base + 1, step.description))
                    observed.made()
                step = following
        raise spec_errors.ConcurrentModificationError(
            f"table {self.target.id}: the change of its columns conflicted with other writers' commits in "
            f"all {_ATTEMPTS} attempts; run it again"
        )

    def _commit(self, step: SchemaStep, base: int, lease: WriteLease) -> bool | None:
        """Return whether this made the version after `base`, and not another writer; None if unknown."""
        from airflow_provider_lancens.spark.commit.single_version_commit import SingleVersionCommit

        fence = SingleVersionCommit(self.target.versions, lease, self.target, base)
        fenced = replace(self.target.dataset, version_authority=VersionAuthority(fence, self.target.id.parts))
        try:
            with panics_as_errors():
                step.apply(fenced.open(base))
        except LANCE_ERRORS as error:
            if (self.target.latest_version() or 0) == base:
                self._check_retry(step, fence, base, error)
            return False if fence.failure is None else None
        return True

    def _check_retry(self, step: SchemaStep, fence: SingleVersionCommit, base: int, error: Exception) -> None:
        from airflow_provider_lancens.namespace.error_types import StaleTableError

        if isinstance(fence.failure, StaleTableError):
            raise fence.failure from error
        if fence.has_failed:
            refusal = fence.error_of(error)
            if not isinstance(refusal, spec_errors.ConcurrentModificationError):
                raise refusal from error
        self.target.check_not_bypassed(base)
        if fence.was_requested:
            return  # the catalog table was changed, but not its version
        text = str(error)
        if isinstance(error, LancePanicError):
            raise panic_error(error, f"table {self.target.id}: a change that {step.description}") from error
        if _INVALID.match(text) or not is_storage_error(error):
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: Lance refuses a change that {step.description}: "
                f"{_SOURCE_LINE.sub('', text)}"
            ) from error
        raise error

    def _newest(self) -> LanceDataset:
        latest = self.target.open_latest()
        if latest is None:
            raise spec_errors.ConcurrentModificationError(
                f"table {self.target.id}: its dataset was removed while its columns were changed; run it "
                "again"
            )
        return latest


def _text(step: SchemaStep | None) -> str:
    return "" if step is None else step.description
