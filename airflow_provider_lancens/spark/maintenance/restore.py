"""Restore an older version, exactly once; and find versions whose files were removed. No Spark."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_examples
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.storage.version_removals import check_not_removed
from airflow_provider_lancens.namespace.storage.version_tags import temporary_tag
from airflow_provider_lancens.redaction import on_one_line
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.table_change import CommitStep, TableChange
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import (
    RESTORE,
    Counts,
    KeyedCommit,
    KeyLookup,
    key_of,
    look_up,
    operation_of,
    operation_of_kind,
    recorded_commits,
)
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.options import OnExistingKey, WriteIdentity
from airflow_provider_lancens.spark.results import (
    CheckResult,
    Outcome,
    RestoreResult,
    UndoneCommit,
    changes_nothing,
    elapsed,
)
from airflow_provider_lancens.spark.table.history import data_changed, read_transaction, restored_version
from airflow_provider_lancens.spark.table.opened_version import open_version
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.table.version_lookup import VersionLike, WantedVersion

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.namespace.operations.repair import Comparison

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileCheck:
    """Which versions of a table refer to files that the storage lacks."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int | None
    """The newest version; None if nothing was written yet."""
    checked: int
    """Number of checked versions."""
    missing: Mapping[int, tuple[str, ...]]
    """The missing paths by version, relative to the table's location."""
    complete_version: int | None
    """The newest version that lacks no file; None if there is none."""
    location: str
    """The root of the table's dataset."""


def check_files(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> FileCheck:
    """Find files that a version of a table refers to and the storage lacks.

    Every version is opened, newest first, so it takes long on a table with many.

    Args:
        namespace: the namespace that knows the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.

    Returns:
        The versions that lack files, and the newest that doesn't.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) `table` can't be an identifier.
        ServiceUnavailableError: (17) the storage or the metastore didn't answer.
        InvalidTableStateError: (19) metastore and storage disagree on which version is the newest.
    """
    with resolved_table(namespace, table) as target:
        newest = target.latest_version()
        versions = sorted(target.dataset.manifests.all(), reverse=True) if newest else []
        checked = {version: _missing(target, version) for version in versions if version <= (newest or 0)}
        missing = {version: paths for version, paths in checked.items() if paths}
        whole = max((version for version, paths in checked.items() if not paths), default=None)
        return FileCheck(str(target.id), newest, len(checked), missing, whole, target.dataset.location)


def check_result(
    table: TableId, compared: Comparison | None, files: FileCheck | None, started: float, *, adopted: bool
) -> CheckResult:
    """Return the result of a check of a table.

    Args:
        table: the table.
        compared: the catalog's version beside the storage's, before anything was adopted; None if the catalog
            has no versions.
        files: the files that versions lack; None if it isn't known which version is the newest.
        started: when the check began, by the monotonic clock.
        adopted: whether the catalog has adopted the storage's version if they differed.
    """
    missing: Mapping[int, tuple[str, ...]] = {} if files is None else files.missing
    newest = None if files is None else files.version
    lacks = newest in missing
    verdict = compared.verdict if compared is not None else "files_missing" if lacks else "consistent"
    reason = f"table {table}: version {newest} lacks {len(missing[newest or 0])} files" if lacks else ""
    is_done = adopted and compared is not None and compared.verdict not in ("consistent", "files_missing")
    return CheckResult(
        table=str(table),
        location=None if files is None else files.location,
        operation="check",
        outcome="done" if is_done else "unchanged",
        version=newest,
        previous_version=newest,
        verdict=verdict,
        catalog_version=None if compared is None else compared.metastore_version,
        storage_version=newest if compared is None else compared.storage_version,
        checked=0 if files is None else files.checked,
        missing_files=missing,
        complete_version=None if files is None else files.complete_version,
        reason=reason if compared is None else compared.explanation,
        seconds=elapsed(started),
    )


@observed("restore")
def restore_version(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    version: VersionLike | None = None,
    *,
    key: str | None = None,
    on_existing_key: OnExistingKey = "redo",
    execution_id: str | None = None,
    location: str | None = None,
) -> RestoreResult:
    """Restore an older version by a new commit; nothing is removed.

    The commits after it are undone. Their idempotency keys count as never committed, so the tasks that made
    them write their rows again when they are cleared.

    Another execution that has committed under the key is treated by `on_existing_key`: ``redo`` restores once
    more, and is refused if others have changed rows since; ``redo_if_changed`` does so only if the version is
    another one; ``skip`` restores nothing; ``write_again`` restores whatever others did. The tries of one
    execution, which restore only once, have the same `execution_id`. See `Table.restore` for the other
    arguments and errors.

    Returns:
        The version that was made, and the commits that it undoes.
    """
    wanted = WantedVersion.of(version)
    identity = WriteIdentity(key, str(wanted) or None, on_existing_key, execution_id)
    with resolved_table(namespace, table) as target:
        target.check_location(location, version)
        lookup = look_up(target, identity, replaces_rows=False)
        if lookup.earlier is not None:
            result = _earlier_result(lookup, lookup.earlier)
        else:
            result = _restored(lookup, wanted)
    if result.outcome == "skipped":
        _log.warning(
            "%s. Nothing was restored, since idempotency key %r was committed before; "
            "on_existing_key='redo' restores once more",
            _sentence(result),
            lookup.write.key,
        )
    else:
        _log.info("%s", _sentence(result))
    return result


def planned_restore(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    version: VersionLike | None = None,
    *,
    key: str | None = None,
    location: str | None = None,
) -> RestoreResult:
    """Return what a restore would undo; see `restore_version` for the arguments. The key isn't looked up."""
    started, wanted = time.monotonic(), WantedVersion.of(version)
    with resolved_table(namespace, table) as target:
        target.check_location(location, version)
        latest = open_version(target, None)
        restored = _version_to_restore(target, latest, wanted)
        undone = _commits_after(target, latest, restored)
    _log.info(
        "table %s: version %d would be restored, and %d commits undone", target.id, restored, len(undone)
    )
    return _result(target, started, key, "planned", latest.version, restored, undone)


@dataclass(frozen=True, slots=True)
class Restoration(TableChange):
    """Restore a version, unless others commit meanwhile."""

    KIND = RESTORE

    version: int

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: commits of others meanwhile would be undone."""
        from lance import LanceOperation

        if latest is None:
            raise self._conflict("its dataset was removed")
        if latest.version != self.base:
            raise self._conflict(f"other writers committed up to version {latest.version}")
        return CommitStep(LanceOperation.Restore(self.version), latest.version)


def _restored(lookup: KeyLookup, wanted: WantedVersion) -> RestoreResult:
    target, latest = lookup.target, lookup.latest
    if latest is None:
        raise target.nothing_written()
    _check_repetition(lookup, latest)
    version = _version_to_restore(target, latest, wanted)
    undone = _commits_after(target, latest, version)
    made = CommitOutcome(KeyedCommit(version), "unchanged")
    # With a key, the newest version is "restored" by a commit too, so that a rerun finds that commit.
    if version != latest.version or (wanted.is_given and lookup.identity.key):
        made = _commit(lookup, latest, version)
    if made.made_here:
        restored = target.open(made.commit.version)
        target.update_catalog_columns(restored.schema)
    key = lookup.identity.key
    return _result(target, lookup.started, key, made.outcome, made.commit.version, version, undone)


def _check_repetition(lookup: KeyLookup, latest: LanceDataset) -> None:
    """Check that a restore that is made again undoes no rows that others have written since.

    Raises:
        InvalidInputError: (13) it would.
    """
    earlier = lookup.repeated
    if earlier is None or lookup.identity.on_existing_key == "write_again":
        return
    if data_changed(latest, since=earlier.version):
        raise spec_errors.InvalidInputError(
            f"table {lookup.target.id}: on_existing_key: version {earlier.version} is a restore under "
            f"idempotency key {lookup.write.key!r}, and others have changed rows since, which another one "
            "would undo; nothing was restored. Use on_existing_key='write_again' if that is intended, or "
            "'skip' to leave the table as it is"
        )


def _version_to_restore(target: ResolvedTable, latest: LanceDataset, wanted: WantedVersion) -> int:
    version = wanted.find(target)
    if version is None:
        return _newest_complete(target, latest)
    target.check_version(version)
    if is_detached(version):
        raise spec_errors.InvalidInputError(
            f"version={version}: is staged, so it was never a version of the table; publish it, rather than "
            "restoring it"
        )
    _check_whole(target, latest, version)
    return version


def _commit(lookup: KeyLookup, latest: LanceDataset, version: int) -> CommitOutcome:
    target = lookup.target
    change = Restoration(str(target.id), latest.version, latest.schema, [], version)
    # The lease protects the temporary tag: a clean-up revokes it before it deletes the tag.
    with (
        acquire_lease(target.dataset).kept_alive(end=True) as lease,
        temporary_tag(latest, target.dataset.manifests, version),
    ):
        return Committer(target, lookup.write, Counts(), lease=lease).commit(change, lookup.version)


def _earlier_result(lookup: KeyLookup, earlier: KeyedCommit) -> RestoreResult:
    transaction = None if lookup.latest is None else read_transaction(lookup.latest, earlier.version)
    version = None if transaction is None else restored_version(transaction)
    outcome, key = lookup.found_outcome(earlier), lookup.identity.key
    found = _result(lookup.target, lookup.started, key, outcome, earlier.version, version)
    return replace(found, newest_version=lookup.version)


def _result(
    target: ResolvedTable,
    started: float,
    key: str | None,
    outcome: Outcome,
    version: int,
    restored: int | None,
    undone: tuple[UndoneCommit, ...] = (),
) -> RestoreResult:
    return RestoreResult(
        table=str(target.id),
        location=target.dataset.location,
        operation="restore",
        outcome=outcome,
        version=version,
        previous_version=version - (0 if changes_nothing(outcome) else 1),
        key=key,
        restored_version=restored,
        undone=undone,
        seconds=elapsed(started),
    )


def _newest_complete(target: ResolvedTable, latest: LanceDataset) -> int:
    versions = sorted((v for v in target.dataset.manifests.all() if v <= latest.version), reverse=True)
    found = next((v for v in versions if not _missing(target, v)), None)
    if found is None:
        raise spec_errors.InvalidTableStateError(
            f"table {target.id}: each of its {len(versions)} versions refers to files that were removed; "
            "restore them from a backup, or overwrite the table"
        )
    return found


def _check_whole(target: ResolvedTable, latest: LanceDataset, version: int) -> None:
    if missing := _missing(target, version):
        # A clean-up may be removing the version, which removes files before the manifest.
        target.check_version(version)
        check_not_removed(latest, target.dataset.manifests, version)
        raise spec_errors.InvalidTableStateError(
            f"table {target.id}: version {version} refers to files that were removed: "
            f"{format_examples(missing)}; choose an older version that Table.check reports as complete"
        )


def _commits_after(target: ResolvedTable, latest: LanceDataset, version: int) -> tuple[UndoneCommit, ...]:
    undone = range(version + 1, latest.version + 1)
    read = {number: read_transaction(latest, number) for number in undone}
    # Versions after an old one that a tag keeps may have been cleaned up.
    removed = {number for number, transaction in read.items() if transaction is None}
    recorded = recorded_commits(target.dataset.manifests, latest, removed) if removed else {}
    commits: list[UndoneCommit] = []
    for number, transaction in read.items():
        if transaction is not None:
            commit = KeyedCommit.of(number, transaction)
            commits.append(_undone(commit, operation_of(transaction), key_of(transaction)))
        elif number in recorded:
            key, commit = recorded[number]
            commits.append(_undone(commit, operation_of_kind(commit.kind), key or None))
        else:
            commits.append(UndoneCommit(number, "", None))
    return tuple(commits)


def _undone(commit: KeyedCommit, operation: str, key: str | None) -> UndoneCommit:
    counts = commit.counts
    return UndoneCommit(
        commit.version,
        operation,
        key,
        inserted=counts.inserted,
        updated=counts.updated or 0,
        deleted=counts.deleted or 0,
    )


def _missing(target: ResolvedTable, version: int) -> tuple[str, ...]:
    stored = StoredVersions(target.dataset.location, target.dataset.storage_options, target.dataset.allowed)
    try:
        return stored.missing_files_of(target.open(version))
    except ValueError:
        if target.dataset.manifests.find(version) is not None:
            raise
        return (f"the manifest of version {version}",)  # the version was cleaned up meanwhile


def _sentence(result: RestoreResult) -> str:
    if result.outcome == "skipped":
        return (
            f"table {result.table}: skipped, version {result.version} was committed before; the table is at "
            f"version {result.newest_version}"
        )
    if not result.is_done:
        return f"table {result.table}: nothing to restore, at version {result.version}"
    keys = ", ".join(on_one_line(commit.key) for commit in result.undone if commit.key)
    again = f"run these writes again: {keys}" if keys else "none of them has an idempotency key"
    if unknown := [commit.version for commit in result.undone if not commit.operation]:
        known = again if keys else "no idempotency key of them is known"
        again = (
            f"{known}; it isn't known what {len(unknown)} of them did, from version {unknown[0]} to "
            f"{unknown[-1]}, since these were cleaned up"
        )
    return (
        f"table {result.table}: restored version {result.restored_version} as version "
        f"{result.version}; {len(result.undone)} commits were undone, {again}"
    )
