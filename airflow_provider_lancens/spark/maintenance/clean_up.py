"""Removal of old versions and their files, beside clients that tag and restore versions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_count, format_size
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.namespace.storage.file_paths import is_file_path
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import VERSIONS, manifest_names
from airflow_provider_lancens.namespace.storage.referenced_files import index_folders, referenced_files
from airflow_provider_lancens.namespace.storage.version_removals import (
    RecordedRemoval,
    recorded_removal,
    removals_at,
)
from airflow_provider_lancens.namespace.storage.version_tags import (
    delete_abandoned_tags,
    list_tags,
    read_references,
)
from airflow_provider_lancens.namespace.storage.write_leases import leases_of
from airflow_provider_lancens.spark.bookmarks import expire_bookmarks
from airflow_provider_lancens.spark.commit.lease_revocation import pending_revocations, revoke_leases
from airflow_provider_lancens.spark.keys import maintain_keys
from airflow_provider_lancens.spark.maintenance.cloned_files import ClonedFiles
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_AGE,
    Thresholds,
    time_before,
)
from airflow_provider_lancens.spark.maintenance.orphans import PendingCommitFiles
from airflow_provider_lancens.spark.maintenance.table_state import (
    MaintainedTable,
    Retention,
    TableState,
    maintained,
    referenced_versions,
    state_of,
)
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.options import plain_timedelta
from airflow_provider_lancens.spark.results import ExpireResult, elapsed
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_EXPIRE_VERSIONS = "expire_versions"
_log = logging.getLogger(__name__)


_BATCH = 1000
"""Files that S3 removes by one request."""
_ALL = 2**31
_MANIFEST = "manifest"
_LONGEST_AGE = timedelta(days=100 * 365)
"""Lance counts an age in microseconds, which `timedelta.max` has too many of."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Versions and files that were removed."""

    versions: int = 0
    files: int = 0
    """Data, deletion and index files."""
    bytes: int = 0
    """The size of all files, also manifests and transactions."""

    @classmethod
    def of(cls, stats: Any) -> Self:
        """Return what Lance counted."""
        files = stats.data_files_removed + stats.index_files_removed + stats.deletion_files_removed
        return cls(int(stats.old_versions), int(files), int(stats.bytes_removed))

    def without(self, kept: Iterable[Any]) -> Removed:
        """Return this without some data, deletion and index files of the plan that it is of."""
        sizes = [file.size_bytes for file in kept]
        return replace(self, files=self.files - len(sizes), bytes=self.bytes - sum(sizes))

    def __add__(self, other: Removed) -> Removed:
        """Return the sum of both."""
        return Removed(self.versions + other.versions, self.files + other.files, self.bytes + other.bytes)


def remove_versions(
    open_newest: Callable[[], LanceDataset],
    files: Manifests,
    retention: Retention,
    newest: int,
    now: datetime,
    cloned: ClonedFiles,
) -> Removed:
    """Remove old versions, and the files that only they refer to; finish removals that were interrupted.

    Args:
        open_newest: opens the dataset at the version that is newest when it is called.
        files: the files at its location.
        retention: which versions to keep.
        newest: the newest version as last read.
        now: the time by the storage's clock.
        cloned: the files that clones need, which are kept.

    Raises:
        ServiceUnavailableError: (17) the storage refused to delete some files; a repetition continues.
        UnsupportedOperationError: (0) the table has branches and clones, or a file of another dataset is in
            its folders.
    """
    unfinished = removals_at(files)
    stored = files.all()
    candidates = retention.removable(stored, newest, now)
    # Versions whose removal was interrupted are removed at any age, since they may lack files.
    begun = [version for version in stored if any(removal.began_with(version) for removal in unfinished)]
    with recorded_removal(files, {*candidates, *begun}) as removal:
        dataset = open_newest()
        sweep = _Sweep(dataset, files, removal, cloned)
        removed = sweep.remove(_limits(retention, candidates))
        if begun:
            removed += sweep.remove({"versions": begun})
    # Each version in these records is gone, or was tagged before its removal began: they can go.
    files.remove(*(removal.path for removal in unfinished))
    return removed


def _limits(retention: Retention, removable: Iterable[int]) -> dict[str, Any]:
    """Return the limits, as Lance takes them, of a removal of some versions."""
    older_than = plain_timedelta(min(retention.older_than, _LONGEST_AGE))
    if versions := list(removable):
        return {
            "older_than": older_than,
            "retain_versions": retention.keep_versions,
            "versions": versions,
        }
    # No versions to remove: only files to which no version refers.
    return {"older_than": older_than, "retain_versions": _ALL}


@dataclass(frozen=True, slots=True)
class _Sweep:
    dataset: LanceDataset
    files: Manifests
    removal: RecordedRemoval
    cloned: ClonedFiles

    def remove(self, limits: Mapping[str, Any]) -> Removed:
        plan = _Plan.of(_explained(self.dataset, limits), self.files.location)
        kept = plan.needed_by(self.cloned)
        self.removal.begin()
        if not plan.is_complete:
            return self._removed_by_lance(limits)
        paths = [path for path in plan.files if path not in kept]
        for start in range(0, len(paths), _BATCH):
            self.files.remove(*paths[start : start + _BATCH])
        return plan.removed_without(kept)

    def _removed_by_lance(self, limits: Mapping[str, Any]) -> Removed:
        stats = self.dataset.cleanup_old_versions(**limits, error_if_tagged_old_versions=False)
        if refused := stats.failed_deletes:
            raise spec_errors.ServiceUnavailableError(
                f"{self.files.location}: the storage refused to delete {refused} files; run it again"
            )
        return Removed.of(stats)


def _explained(dataset: LanceDataset, limits: Mapping[str, Any]) -> Any:
    return read_references(
        dataset,
        lambda: dataset.explain_cleanup_old_versions(
            **limits, error_if_tagged_old_versions=False, include_files=True, max_files=_ALL
        ),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What Lance would remove."""

    stats: Any
    files: Mapping[str, Any]
    """Lance's description of each file, by its path relative to the location; the manifests last."""
    is_complete: bool
    """Whether these are all files, so that they can be removed without Lance."""

    @classmethod
    def of(cls, explained: Any, location: str) -> Self:
        root = (location if is_local(location) else urlsplit(location).path).strip("/")
        named = [(file.path, file) for file in explained.candidate_files]
        outside = any(not path.startswith(f"{root}/") for path, _ in named)
        named.sort(key=lambda file: file[1].kind == _MANIFEST)  # a stable sort
        below = ((path.removeprefix(f"{root}/"), file) for path, file in named)
        return cls(
            explained.stats,
            # Other names aren't Lance's: such files stay.
            {path: file for path, file in below if is_file_path(path)},
            # The clean-up includes branches, and the plan doesn't list all of their files.
            is_complete=not outside and not explained.referenced_branches,
        )

    def needed_by(self, cloned: ClonedFiles) -> set[str]:
        """Return which of its files clones of the table need.

        Raises:
            UnsupportedOperationError: (0) there are clones, and only Lance knows all files; or some files are
                of another dataset.
        """
        foreign = next(filter(purge.is_of_inner_dataset, self.files), None)
        if foreign is not None:  # local tables are checked by `_check_unlinked`
            raise _not_own(cloned.target.id, foreign)
        if not self.is_complete and (clones := cloned.registered()):
            raise spec_errors.UnsupportedOperationError(
                f"table {cloned.target.id}: table {clones[0].table} is a shallow clone that refers to its "
                "files, and Lance, which removes its versions since it has branches, doesn't keep them; "
                "nothing was removed: delete the branches, drop the clone, or overwrite it with its own rows"
            )
        return cloned.among(self.files)

    def removed_without(self, kept: Collection[str]) -> Removed:
        """Return what it removes, if some of its files are kept."""
        return Removed.of(self.stats).without(self.files[path] for path in kept)


def files_of_expired_bookmarks(
    target: ResolvedTable,
    dataset: LanceDataset,
    names: Collection[str],
    retention: Retention,
    now: datetime,
    cloned: ClonedFiles,
) -> Removed:
    """Return what only expired bookmarks keep, which a dry run adds, since it deletes no bookmark.

    It reads the manifest of each version kept.

    Args:
        target: the table.
        dataset: its dataset at the newest version.
        names: the names of the expired bookmarks.
        retention: which versions the clean-up keeps.
        now: the time by the storage's clock.
        cloned: the files that clones need, which are kept anyway.
    """
    manifests = target.dataset.manifests.all()
    old = retention.removable(manifests, dataset.version, now).keys() - referenced_versions(dataset, names)
    tags = list_tags(dataset)
    held = old & {int(tags[name]["version"]) for name in names if name in tags}
    paths = _files(target, held) - _files(target, (v for v in manifests if v not in old))
    paths -= cloned.among(paths)
    size = sum(_size(target, path) for path in (*paths, *_of_commits(target, held)))
    return Removed(len(held), len(paths), size)


def _files(target: ResolvedTable, versions: Iterable[int]) -> set[str]:
    found: set[str] = set()
    by_path = replace(target.dataset, version_authority=None)
    for version in versions:
        dataset = by_path.open(version)
        folders = index_folders(dataset)
        indices = (file.path for folder in folders for file in target.dataset.manifests.below(folder))
        found |= referenced_files(dataset) | set(indices)
    return found


def _of_commits(target: ResolvedTable, versions: Iterable[int]) -> set[str]:
    """Return the manifests of versions, and the transactions that made them."""
    manifests = {f"{VERSIONS}/{name}" for version in versions for name in manifest_names(version)}
    commits = PendingCommitFiles(target.dataset.manifests)
    return {path for manifest in manifests for path in (manifest, *commits.transactions_in(manifest))}


def _size(target: ResolvedTable, path: str) -> int:
    file = target.dataset.manifests.stat(path)
    return 0 if file is None else file.size


_SAFE_AGE = timedelta(days=6)
"""Lance's clean-up keeps files younger than this: its limit is a week, and a clean-up takes time."""
_SILENCE = timedelta(days=1)
"""Time without a heartbeat after which a write is presumed dead."""
_ABANDONED = timedelta(days=7)
"""Age of temporary tags that are deleted: later than the lease of a dead restore is revoked."""


@observed("expire_versions")
def clean_up_versions(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    older_than: timedelta = DEFAULT_AGE,
    keep_versions: int = 1,
    keys_older_than: timedelta | None = None,
    dry_run: bool = False,
    thresholds: Thresholds | None = None,
) -> ExpireResult:
    """Remove old versions of a table, and the files that only they refer to.

    The newest version, the versions replaced within `older_than`, the newest few and tagged ones are kept. If
    the metastore decides the versions, the newest is the one it records, and interrupted commits of it are
    finished first. Bookmarks whose ``expires_after`` has ended no longer keep their versions; that they
    expired is recorded before anything is removed. Unreferenced files are removed once they are a week old,
    not before: a writer may be about to commit them. A write that has been running for about that long stops
    the clean-up; one without a heartbeat for a day is presumed dead, and a version that changes nothing is
    committed, so that it can't commit if it resumes.

    Files that the newest versions of registered shallow clones refer to are kept, and the log names the
    clones: of a table in Hive or Glue, in all databases that may be listed, and as long as there are no more
    than 1,000 Lance tables.

    Idempotency keys outlive their versions. If `keys_older_than` is given, older ones expire: a write under
    one is refused from then on.

    See `Table.expire_versions` for its arguments and errors.
    """
    started = time.monotonic()
    reason = ""
    with resolved_table(namespace, table) as target:
        if thresholds is not None and thresholds.limit_clean_up:
            state = state_of(target)
            decision = state.decide_clean_up(older_than, keep_versions, thresholds)
            if not decision.is_due:
                return not_cleaned_up(state, decision.reason, dry_run=dry_run)
            reason = decision.reason
        with maintained(target) as opened:
            expired_keys = 0
            now = opened.lease.began()
            if not dry_run:
                if _revoke_dead_writes(opened, now):
                    opened = opened.at_newest()
                    keep_versions += 1  # besides the barrier, keep the version before it
                # Records which keys the versions that may be removed have committed.
                expired_keys = maintain_keys(
                    opened.target,
                    opened.dataset,
                    None if keys_older_than is None else time_before(now, keys_older_than),
                )
            bookmarks = _expire_bookmarks(opened, now, dry_run)
            tagged = _tagged(opened, bookmarks)
            cloned = ClonedFiles(opened.target)
            retention = Retention(older_than, keep_versions)
            with opened.removing_versions():
                removed = _clean_up(opened, retention, now, cloned, dry_run)
            if dry_run and bookmarks:
                removed += files_of_expired_bookmarks(
                    opened.target, opened.dataset, bookmarks, retention, now, cloned
                )
            cloned.log()
            is_done = bool(removed.files + removed.versions + expired_keys + len(bookmarks))
            result = ExpireResult(
                table=str(opened.target.id),
                location=opened.target.dataset.location,
                operation=_EXPIRE_VERSIONS,
                outcome="planned" if dry_run else "done" if is_done else "unchanged",
                version=opened.version,
                previous_version=opened.version,
                versions=removed.versions,
                files=removed.files,
                bytes=removed.bytes,
                kept_by_tag=tagged,
                expired_keys=expired_keys,
                expired_bookmarks=tuple(bookmarks),
                clones=tuple(sorted(cloned.clones)),
                seconds=elapsed(started),
                reason=reason,
            )
    _log.info("%s", _sentence(result))
    return result


def not_cleaned_up(state: TableState, reason: str, *, dry_run: bool = False) -> ExpireResult:
    """Return the result where a clean-up isn't due."""
    return ExpireResult(
        table=state.table,
        location=state.target.dataset.location,
        operation=_EXPIRE_VERSIONS,
        outcome="planned" if dry_run else "unchanged",
        version=state.version,
        previous_version=state.version,
        seconds=0.0,
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


def _clean_up(
    opened: MaintainedTable, retention: Retention, now: datetime, cloned: ClonedFiles, dry_run: bool
) -> Removed:
    _check_unlinked(opened)
    files = opened.target.dataset.manifests
    if dry_run:
        limits = _limits(retention, retention.removable(files.all(), opened.version, now))
        plan = _Plan.of(_explained(opened.dataset, limits), files.location)
        return plan.removed_without(plan.needed_by(cloned))
    delete_abandoned_tags(opened.dataset, now - _ABANDONED)
    return remove_versions(lambda: opened.at_newest().dataset, files, retention, opened.version, now, cloned)


def _check_unlinked(opened: MaintainedTable) -> None:
    # Lance lists all files below `data`, following links, and removes files its versions don't refer to.
    location = opened.target.dataset.location
    foreign = purge.first_foreign_path(location)
    if foreign is not None:
        raise _not_own(opened.target.id, foreign)


def _not_own(table: TableId, path: str) -> spec_errors.UnsupportedOperationError:
    return spec_errors.UnsupportedOperationError(
        f"table {table}: {path} is a symbolic link or another dataset inside the table's own, or a file of "
        "it, and a clean-up would delete its contents; move it out of the table's location first"
    )


def _tagged(opened: MaintainedTable, expired: Sequence[str]) -> int:
    tags = list_tags(opened.dataset).items()
    return len({tag["version"] for name, tag in tags if name not in expired} - {opened.version})


def _sentence(result: ExpireResult) -> str:
    did = "would remove" if result.outcome == "planned" else "removed"
    return (
        f"table {result.table}: {did} {format_count(result.versions, 'version')}, "
        f"{format_count(result.files, 'file')}, {format_size(result.bytes)}; "
        f"tags keep {result.kept_by_tag} older versions"
        + (f"; {result.expired_keys} idempotency keys expired" if result.expired_keys else "")
        + (f"; {len(result.expired_bookmarks)} bookmarks expired" if result.expired_bookmarks else "")
        + (f"; clones keep files: {', '.join(result.clones)}" if result.clones else "")
    )
