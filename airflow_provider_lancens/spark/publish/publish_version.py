"""Publish a staged version as the table's next version, exactly once, or discard it with its files."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.locations import shown_location
from airflow_provider_lancens.namespace.storage.missing_files import example_of
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.storage.write_leases import leases_of
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.table_changes import (
    RUN_AGAIN,
    Append,
    CommitStep,
    TableChange,
)
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.keys import KeyedCommit, KeyLookup, key_of, look_up
from airflow_provider_lancens.spark.options import WriteRequest
from airflow_provider_lancens.spark.publish.staged_versions import StagedVersion, open_staged
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.described_columns import describe_columns
from airflow_provider_lancens.spark.table.history import read_transaction, transactions
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.schema import LanceSchema
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)

EXPIRES_AFTER = timedelta(days=6)
"""A clean-up by any client of Lance removes files that no published version refers to after seven days."""


def publish_version(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, version: int
) -> WriteResult:
    """Make a staged version the table's next version, without copying its files.

    It is committed under the idempotency key of its write, so that a repetition finds the commit. Rows that
    others wrote since it was staged are treated as by the write itself: an append and an upsert are applied
    to them, an overwrite is refused if there are any.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        version: the `version` in the result of a write with ``publish=False``. If that write found its rows
            published by an earlier run, it is that version, and nothing is left to do.

    Returns:
        The version with the rows, and what was written for it.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) there is no such version: it was discarded, or it has expired.
        InvalidInputError: (13) other rows were published under its idempotency key.
        ConcurrentModificationError: (14) every attempt lost to a commit of others.
        InvalidTableStateError: (19) it conflicts with a commit that others made since it was staged, it was
            staged more than six days ago, or files of it were removed.
    """
    with resolved_table(namespace, table) as target:
        if not is_detached(version):
            return _published(target, version)
        # Before the version is opened: a discard removes its manifest, and then looks for leases.
        with acquire_lease(target.dataset).kept_alive(end=True) as lease:
            staged = open_staged(target, version)
            lookup = look_up(target, WriteRequest(idempotency_key=staged.key))
            found = _published_as(lookup, staged)
            outcome = CommitOutcome(found, made_here=False) if found else _publish(lookup, staged, lease)
            target.dataset.manifests.remove_outdated(staged.tag)
            result = outcome.commit.result(target.id, lookup.started, committed=outcome.made_here)
            if not outcome.made_here:
                result = replace(result, newest_version=lookup.version)
    did = "published" if outcome.made_here else "an earlier run had published"
    _log.info("table %s: %s staged version %d as version %d", result.table, did, version, result.version)
    return result


def discard_version(namespace: NamespaceSpec | LanceNamespace, table: TableId | str, version: int) -> bool:
    """Discard a staged version, with the files that were written for it.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        version: the `version` in the result of a write with ``publish=False``.

    Returns:
        Whether there was such a version. The rows of one that was published remain.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) it isn't a staged version.
    """
    if not is_detached(version):
        raise spec_errors.InvalidInputError(
            f"version={version}: isn't a staged version; to undo a published one, restore an older version"
        )
    with resolved_table(namespace, table) as target:
        try:
            staged = open_staged(target, version)
        except spec_errors.TableVersionNotFoundError:
            return False
        files = target.dataset.manifests
        files.remove(staged.path, staged.tag)
        # Whoever publishes it has a lease already, or will miss the manifest.
        if leases_of(files):
            _log.info("table %s: other writes are running; removing orphans deletes the files", target.id)
        elif not _may_be_published(target.open_latest(), staged):
            files.remove(*staged.files)
            if foreign := staged.foreign_paths:
                _log.warning(
                    "table %s: staged version %d named files outside of the table, which are kept: %s",
                    target.id,
                    version,
                    shown_location(example_of(foreign)),
                )
    _log.info("table %s: discarded staged version %d", target.id, version)
    return True


def _may_be_published(latest: LanceDataset | None, staged: StagedVersion) -> bool:
    """Return whether a version may refer to the files: also one that a Restore has undone, which is kept."""
    if latest is None:
        return False
    return any(
        transaction is None or _is_publication(staged, version, transaction)
        for version, transaction in transactions(latest, staged.spec.base)
    )


def _is_publication(staged: StagedVersion, version: int, transaction: Transaction) -> bool:
    return key_of(transaction) == staged.key and staged.write.is_done_by(KeyedCommit.of(version, transaction))


def _published_as(lookup: KeyLookup, staged: StagedVersion) -> KeyedCommit | None:
    found = lookup.earlier
    if found is not None and not staged.write.is_done_by(found):
        raise spec_errors.InvalidInputError(
            f"table {lookup.target.id}: version {found.version} was published under idempotency key "
            f"{staged.key!r} with other data; discard staged version {staged.version}"
        )
    return found


def _published(target: ResolvedTable, version: int) -> WriteResult:
    """Return the result of the write that made a version."""
    target.check_version(version)
    transaction = read_transaction(target.open(version), version)
    found = KeyedCommit(version) if transaction is None else KeyedCommit.of(version, transaction)
    result = found.result(target.id, 0.0, committed=False)
    return replace(result, seconds=0.0, newest_version=target.latest_version())


def _publish(lookup: KeyLookup, staged: StagedVersion, lease: WriteLease) -> CommitOutcome:
    target = lookup.target
    _check_complete(target, staged)
    committer = Committer(target, staged.write, staged.commit.counts, lease=lease)
    outcome = committer.commit(StagedChange.of(target, staged), lookup.version)
    if staged.spec.replaces_all:
        describe_columns(target, staged.schema)
    return outcome


@dataclass(frozen=True, slots=True)
class StagedChange(TableChange):
    """The change of a staged version: as it was staged, or made again if others have committed since."""

    target: ResolvedTable
    staged: StagedVersion

    @property
    def kind(self) -> str:
        """See `TableChange.kind`: that of its write."""
        return self.staged.commit.kind

    @classmethod
    def of(cls, target: ResolvedTable, staged: StagedVersion) -> Self:
        """Return the change of a staged version."""
        table, base = str(target.id), staged.spec.base
        return cls(table, base, staged.schema, staged.fragments, target, staged)

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`.

        Raises:
            InvalidTableStateError: (19) it conflicts with a commit made since it was staged, whenever it is
                tried again.
            TableVersionNotFoundError: (11) it was discarded meanwhile.
        """
        if latest is not None and latest.version == self.base and self._is_complete():
            return CommitStep(self._operation, latest.version, self.staged.commit.counts)
        change = self.staged.spec.change(self.target, self.schema, self.fragments, self._columns())
        try:
            step = change.apply_to(latest)
        except spec_errors.ConcurrentModificationError as error:
            reason = str(error).removesuffix(RUN_AGAIN)
            raise spec_errors.InvalidTableStateError(
                f"{reason}, so that staged version {self.staged.version} can't be published any more; "
                "discard it, and write it again"
            ) from error
        if latest is None or not isinstance(change, Append):
            return step
        # Lance refuses an append for `base` if the table was restored or overwritten since, which doesn't
        # matter to new rows: their columns are still the same.
        return step._replace(read_version=latest.version)

    @property
    def _operation(self) -> Any:
        """The operation as it was staged."""
        from lance import LanceOperation

        staged = self.staged.transaction.operation
        if not isinstance(staged, LanceOperation.Update):
            return staged
        # Lance reads it back with an update mode, see `Upsert`: new rows would be missing in its indices.
        return LanceOperation.Update(
            removed_fragment_ids=staged.removed_fragment_ids,
            updated_fragments=staged.updated_fragments,
            new_fragments=staged.new_fragments,
        )

    def _columns(self) -> LanceSchema:
        try:
            return self.target.open(self.staged.version).lance_schema
        except ValueError:
            self.target.check_version(self.staged.version)
            raise

    def _is_complete(self) -> bool:
        """Return whether what the staged version needs besides its data files is there: marks of deletion."""
        changed = getattr(self.staged.transaction.operation, "updated_fragments", ())
        deletions = [(one.id, one.deletion_file) for one in changed if one.deletion_file is not None]
        paths = [file.path(fragment) for fragment, file in deletions]
        return not self.target.dataset.manifests.missing(paths)


def _check_complete(target: ResolvedTable, staged: StagedVersion) -> None:
    if foreign := staged.foreign_paths:
        raise spec_errors.InvalidTableStateError(
            f"table {target.id}: staged version {staged.version} names files outside of the table, such as "
            f"{shown_location(example_of(foreign))}: another client made it; discard it"
        )
    files = target.dataset.manifests.stats(staged.files)
    # A clean-up goes by the age of each file, and a long write made the first ones long before it was staged.
    oldest = min([staged.created, *(file.modified for file in files.values() if file is not None)])
    age = datetime.now(UTC) - oldest
    if age > EXPIRES_AFTER:
        raise spec_errors.InvalidTableStateError(
            f"table {target.id}: the oldest file of staged version {staged.version} was written {age.days} "
            f"days ago; after {EXPIRES_AFTER.days} days any clean-up may remove it; discard the version, and "
            "write it again"
        )
    if missing := [path for path, file in files.items() if file is None]:
        raise spec_errors.InvalidTableStateError(
            f"table {target.id}: files of staged version {staged.version} were removed: "
            f"{example_of(missing)}; discard it, and write it again"
        )
