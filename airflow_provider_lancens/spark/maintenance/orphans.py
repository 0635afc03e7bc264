"""Remove the files left by failed writes, but no file of a running write.

A file is removed if it is older than `older_than`, was written before the oldest running write began, and no
version refers to it. The order makes that safe: first the files are listed, then the leases, the leases of
dead writes are revoked (`lease_revocation`), and then the versions are read. A write that commits meanwhile
is seen in the leases or in the versions. Registered shallow clones are read last: a version that keeps their
files may be tagged only until they are registered.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_count, format_size
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.storage.object_store import (
    MANIFEST_SUFFIX,
    RECORDED,
    TAGS,
    VERSIONS,
    detached_version_of,
    version_of,
)
from airflow_provider_lancens.namespace.storage.referenced_files import referenced_files
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.namespace.storage.version_removals import REMOVALS
from airflow_provider_lancens.namespace.storage.write_leases import LEASES, SILENCE, LeaseRecord, leases_of
from airflow_provider_lancens.spark.bookmarks import EXPIRED_BOOKMARKS
from airflow_provider_lancens.spark.commit.lease_revocation import pending_revocations, revoke_leases
from airflow_provider_lancens.spark.commit.write_lease import REVOKED, acquire_lease, stray_heartbeats
from airflow_provider_lancens.spark.keys import FOLDERS as KEY_FOLDERS
from airflow_provider_lancens.spark.maintenance.cloned_files import ClonedFiles
from airflow_provider_lancens.spark.maintenance.maintenance_options import DEFAULT_ORPHAN_AGE, time_before
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.publish import (
    StagedVersion,
    is_staged_tag,
    staged_versions,
)
from airflow_provider_lancens.spark.results import OrphansResult, elapsed
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)

SHORTEST = SILENCE
_STAGED_FOR = timedelta(days=7)
"""A staged version can't be published after six days; a day later its files are removed."""
_SLACK = timedelta(minutes=1)
"""Allowed clock skew between a storage's machines."""
_DATA = "data"
_FOLDERS = {_DATA: (".lance",), "_deletions": (".arrow", ".bin")}
_BRANCHES = "tree"


@observed("remove_orphans")
def remove_orphans(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    older_than: timedelta = DEFAULT_ORPHAN_AGE,
    dry_run: bool = False,
) -> OrphansResult:
    """Remove the files of failed writes: data, deletions, and files of interrupted commits.

    Writes of this package hold a lease for as long as they run, so their files are kept. If a write is
    presumed dead, its lease is revoked, and a version that changes nothing is committed, so that it can't
    commit if it resumes. Files of other writers are judged by their age alone: set `older_than` longer than
    any of their jobs. Files that registered shallow clones refer to are kept, see `clean_up_versions`.

    See `Table.remove_orphans` for its arguments and errors.

    Returns:
        What was removed.
    """
    started = time.monotonic()
    if older_than < SHORTEST:
        raise spec_errors.InvalidInputError(f"older_than: expected at least {SHORTEST}, got {older_than}")
    with (
        resolved_table(namespace, table) as target,
        acquire_lease(target.dataset).kept_alive(end=True) as now,
    ):
        threshold = time_before(now.began(), older_than)
        result = _Search(target, now.files, threshold, started).remove(dry_run=dry_run)
    action = "would be removed" if dry_run else "removed"
    found = (
        f"{format_count(result.files, 'file')}, {format_size(result.bytes)}" if result.files else "no files"
    )
    _log.info("table %s: %s %s", result.table, found, action)
    return result


@dataclass(frozen=True, slots=True)
class _Leases:
    alive: list[LeaseRecord]
    dead: list[LeaseRecord]
    records: list[str]
    """Paths of the records of revocations whose barrier may not be committed."""

    @classmethod
    def of(cls, files: TableFiles, threshold: datetime) -> Self:
        found = leases_of(files)
        alive = [lease for lease in found if lease.refreshed >= threshold]
        dead = [lease for lease in found if lease.refreshed < threshold]
        return cls(alive, dead, pending_revocations(files))


@dataclass(frozen=True, slots=True)
class _Search:
    target: ResolvedTable
    files: TableFiles
    threshold: datetime
    started: float

    def remove(self, *, dry_run: bool) -> OrphansResult:
        self._staged()  # raises if there are other detached versions
        old = [file for file in self._written() if file.modified < self.threshold and not file.linked]
        folders = self.files.folders(_DATA)
        leases = _Leases.of(self.files, self.threshold)
        unfenced = 0
        if self.target.latest_version() is None:
            unfenced = self._unfenced(leases)
            leases = _Leases([*leases.alive, *leases.dead], [], [])
        if not dry_run:
            revoke_leases(self.target, self.files, leases.dead, leases.records)
        orphans = self._orphans(old, folders, leases)
        cloned = ClonedFiles(self.target)
        kept = cloned.among(file.path for file in orphans)
        orphans = [file for file in orphans if file.path not in kept]
        cloned.log()
        if not dry_run:
            self.files.remove(*(file.path for file in orphans), *stray_heartbeats(self.files, self.threshold))
        paths = tuple(sorted(file.path for file in orphans))
        size = sum(file.size for file in orphans)
        clones = tuple(sorted(cloned.clones))
        newest = self.target.latest_version()
        return OrphansResult(
            table=str(self.target.id),
            location=self.target.dataset.location,
            operation="remove_orphans",
            outcome="planned" if dry_run else "done" if paths else "unchanged",
            version=newest,
            previous_version=newest,
            files=len(paths),
            bytes=size,
            unfenced=unfenced,
            clones=clones,
            paths=paths,
            seconds=elapsed(self.started),
        )

    def _unfenced(self, leases: _Leases) -> int:
        """How many writes seem dead and may still resume: no barrier can be committed without columns."""
        count = len(leases.dead)
        if count:
            _log.warning(
                "Table %s: keeping the files of %d writes presumed dead: the table has no version "
                "yet, and one of them may resume and commit the first. Write the table, then clean "
                "up again",
                self.target.id,
                count,
            )
        return count

    def _orphans(self, old: list[StoredFile], folders: list[str], leases: _Leases) -> list[StoredFile]:
        beginning = min(lease.began for lease in leases.alive) - _SLACK
        tags = [file for file in self.files.below(TAGS) if is_staged_tag(file.path)]
        staged = self._staged()
        expired_before = min(self.threshold, datetime.now(UTC) - _STAGED_FOR)
        expired = [version for version in staged if version.created < expired_before]
        current = [version for version in staged if version not in expired]
        kept = self._referred_to(current) | {version.tag for version in current}
        # The folder of a data file's blobs has the name of that file.
        blobs = [self.files.below(folder) for folder in folders if f"{folder}.lance" not in kept]
        manifests = (self.files.stat(version.path) for version in expired)
        candidates = [*old, *tags, *chain(*blobs), *(file for file in manifests if file is not None)]
        begun_before = min(beginning, self.threshold)
        return [
            file
            for file in candidates
            if file.modified < begun_before and file.path not in kept and not file.linked
        ]

    def _written(self) -> Iterator[StoredFile]:
        for folder, endings in _FOLDERS.items():
            yield from (file for file in self.files.below(folder) if file.path.endswith(endings))
        yield from PendingCommitFiles(self.files).unfinished()

    def _referred_to(self, staged: Iterable[StagedVersion]) -> set[str]:
        # Read first: this gives the newest version of a managed table its final name.
        newest = self.target.latest_version()
        manifests = self.target.dataset.manifests
        by_path = replace(self.target.dataset, version_authority=None)
        versions = [*manifests.all(), *(staged_version.version for staged_version in staged)]
        kept: set[str] = set()
        for version in versions:
            try:
                kept |= referenced_files(by_path.open(version))
            except ValueError:
                if manifests.find(version) is not None:
                    raise
                # the version and its own files were cleaned up or discarded meanwhile
        if newest is not None:
            # Opened through the version authority: a direct writer may have used the final name.
            kept |= referenced_files(self.target.open(newest))
        return kept | PendingCommitFiles(self.files).needed(newest)

    def _staged(self) -> list[StagedVersion]:
        """Return the staged versions, if the table has no other detached versions."""
        manifests = self.files.below(VERSIONS)
        detached = {file.path for file in manifests if detached_version_of(file.path) is not None}
        staged = list(staged_versions(self.target)) if detached else []
        others = sorted(detached - {version.path for version in staged})
        # One of these may have been discarded since the listing: then the error doesn't apply.
        if len(self.files.missing(others)) < len(others):
            raise self._unsupported(f"detached versions that this package didn't stage, such as {others[0]}")
        if self.files.folders(_BRANCHES):
            raise self._unsupported("branches")
        return staged

    def _unsupported(self, what: str) -> spec_errors.UnsupportedOperationError:
        return spec_errors.UnsupportedOperationError(
            f"table {self.target.id}: it has {what}; only they may refer to some files, so no orphans can be "
            "determined. Remove them first, with the client that made them"
        )


def _is_final(path: str) -> bool:
    """Return whether a manifest belongs to a version, staged or not."""
    return version_of(path) is not None or detached_version_of(path) is not None


_TRANSACTIONS, _TRANSACTION_SUFFIX = "_transactions", ".txn"
_STAGED = f"{MANIFEST_SUFFIX}-"
_NAME_OF_TRANSACTION = re.compile(rb"\d+-[0-9a-f-]{36}\.txn")


@dataclass(frozen=True, slots=True)
class PendingCommitFiles:
    """Files of finished and unfinished commits of one dataset."""

    files: TableFiles

    def unfinished(self) -> Iterator[StoredFile]:
        """Yield transactions, staged and recorded manifests, regardless of the outcome of their commits."""
        transactions = self.files.below(_TRANSACTIONS)
        yield from (file for file in transactions if file.path.endswith(_TRANSACTION_SUFFIX))
        yield from (file for file in self.files.below(VERSIONS) if _STAGED in file.path)
        yield from self._records()

    def needed(self, newest: int | None) -> set[str]:
        """Return the paths among them that versions need.

        Args:
            newest: the newest version. Its manifest may be a recorded one, and not have its final name yet.
        """
        records = [file.path for file in self._records() if version_of(file.path) == newest]
        finals = [file.path for file in self.files.below(VERSIONS) if _is_final(file.path)]
        return {
            *records,
            *(path for manifest in (*records, *finals) for path in self.transactions_in(manifest)),
        }

    def transactions_in(self, manifest: str) -> Iterator[str]:
        """Yield the paths of the transactions that a manifest names."""
        for name in _NAME_OF_TRANSACTION.findall(self.files.read(manifest) or b""):
            yield f"{_TRANSACTIONS}/{name.decode()}"

    def _records(self) -> Iterator[StoredFile]:
        for folder in self.files.folders(RECORDED):
            if folder not in {LEASES, REVOKED, EXPIRED_BOOKMARKS, REMOVALS, *KEY_FOLDERS}:
                yield from self.files.below(folder)
