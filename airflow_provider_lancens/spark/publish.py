"""Staged versions: complete versions that readers find only by number, until they are published or discarded.

Publishing commits the staged change as the table's next version, exactly once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_examples
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.locations import shown_location
from airflow_provider_lancens.namespace.storage.file_paths import is_file_path
from airflow_provider_lancens.namespace.storage.json_records import UNREADABLE, whole_number
from airflow_provider_lancens.namespace.storage.object_store import (
    TAGS,
    VERSIONS,
    detached_name,
    detached_version_of,
    is_detached,
)
from airflow_provider_lancens.namespace.storage.referenced_files import referenced_files
from airflow_provider_lancens.namespace.storage.version_tags import (
    OWN_TAGS,
    create_tag,
    file_of_tag,
    temporary_tag,
)
from airflow_provider_lancens.namespace.storage.write_leases import leases_of
from airflow_provider_lancens.spark.commit.append_overwrite import (
    AppendCommit,
    OverwriteCommit,
    ReplaceWhereCommit,
)
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.table_change import RUN_AGAIN, CommitStep, TableChange
from airflow_provider_lancens.spark.commit.upsert import ReplaceValuesCommit, UpsertCommit, read_keys
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.keys import (
    IDEMPOTENCY_KEY,
    Counts,
    KeyedCommit,
    KeyedWrite,
    KeyLookup,
    is_used,
    key_of,
    look_up,
)
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.options import WriteIdentity
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.history import (
    added_fragments,
    kept_version,
    read_transaction,
    transactions,
)
from airflow_provider_lancens.spark.table.opened_version import open_version
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset, Transaction
    from lance.schema import LanceSchema
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.namespace.storage.table_files import StoredFile

_log = logging.getLogger(__name__)

_STAGED = "lancens.staged"
"""The property of a transaction that made a staged version: a `ChangeSpec`."""
_TAG = f"{OWN_TAGS}staged-"


def tag_of(uuid: str) -> str:
    """Return the tag that keeps the version onto which a transaction with this UUID was staged."""
    return f"{_TAG}{uuid}"


def is_staged_tag(path: str) -> bool:
    """Return whether a file stores a tag of `tag_of`."""
    return re.fullmatch(rf"{TAGS}/{_TAG}[0-9a-f-]{{36}}\.json", path) is not None


@dataclass(frozen=True, slots=True)
class ChangeSpec:
    """How the change of a staged version is made again, when it is published."""

    mode: str
    base: int
    """The version that was the newest when the write began."""
    on: Sequence[str] = ()
    """The key columns of an upsert, or the columns by whose values an overwrite replaces rows."""
    compared: bool = False
    """Whether the rows of an upsert were chosen by comparing them with the rows of `base`."""
    condition: str | None = None
    """The condition on the rows that are replaced, in Lance's SQL, rendered of a parsed condition."""
    repeats: int = 0
    """The version up to which commits under its key are made again by publishing it."""

    @property
    def replaces_all(self) -> bool:
        """Whether it replaces all rows of the table, and its columns."""
        return self.mode not in ("append", "upsert") and self.condition is None and not self.on

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the property; None if another client wrote something else."""
        try:
            spec = cls(**json.loads(text))
        except UNREADABLE:
            return None
        columns = isinstance(spec.on, list | tuple) and all(isinstance(name, str) for name in spec.on)
        texts = isinstance(spec.mode, str) and isinstance(spec.condition, str | None)
        numbers = whole_number(spec.base) is not None and whole_number(spec.repeats) is not None
        return spec if columns and texts and numbers else None

    def as_properties(self) -> dict[str, str]:
        """Return it as a property of a transaction."""
        fields = {name: getattr(self, name) for name in ("mode", "base", "compared", "condition", "repeats")}
        return {_STAGED: json.dumps({**fields, "on": list(self.on)})}

    def change(
        self,
        target: ResolvedTable,
        schema: pa.Schema,
        fragments: Sequence[FragmentMetadata],
        written_for: LanceSchema,
    ) -> TableChange:
        """Return the change that adds fragments, which were written for these columns, to a table."""
        table = str(target.id)
        if self.condition is not None:
            return ReplaceWhereCommit(
                table, self.base, schema, fragments, self.condition, written_for=written_for
            )
        if self.on:
            columns = pa.schema([schema.field(name) for name in self.on])
            unique = self.mode == "upsert"
            keys = read_keys(target.dataset, fragments, columns, None, table, unique=unique)
            if not unique:
                return ReplaceValuesCommit(table, self.base, schema, fragments, keys, written_for=written_for)
            return UpsertCommit(
                table, self.base, schema, fragments, keys, self.compared, written_for=written_for
            )
        kind = AppendCommit if self.mode == "append" else OverwriteCommit
        return kind(table, self.base, schema, fragments, written_for=written_for)


@dataclass(frozen=True, slots=True)
class StagedVersion:
    """One staged version."""

    version: int
    """The number of the version, which has no order."""
    path: str
    """The path of its manifest, relative to the table's location."""
    created: datetime
    """When its manifest was written, by the storage's clock."""
    spec: ChangeSpec
    schema: pa.Schema = field(repr=False)
    transaction: Transaction = field(repr=False)

    @property
    def key(self) -> str:
        """The idempotency key of its write."""
        return str(self._properties[IDEMPOTENCY_KEY])

    @property
    def commit(self) -> KeyedCommit:
        """The commit of the version, with its counts and its fingerprint."""
        return KeyedCommit.of(self.version, self.transaction)

    @property
    def write(self) -> KeyedWrite:
        """What identifies the commit that publishes it."""
        commit = self.commit
        return KeyedWrite(self.key, commit.fingerprint, "skip", commit.execution_id, self.spec.repeats)

    @property
    def tag(self) -> str:
        """The file of the tag that keeps the version onto which it was staged."""
        return file_of_tag(tag_of(self.commit.uuid))

    @property
    def fragments(self) -> list[FragmentMetadata]:
        """What was written for it."""
        return added_fragments(self.transaction.operation)

    @property
    def files(self) -> list[str]:
        """The data files that were written for it, relative to the table's location.

        A crafted version may name other files: see `foreign_paths`.
        """
        return [path for path in self._paths if is_file_path(path)]

    @property
    def foreign_paths(self) -> list[str]:
        """What it names as its data files although it can't be below the table's location."""
        return [path for path in self._paths if not is_file_path(path)]

    @property
    def _paths(self) -> list[str]:
        return [f"data/{file.path}" for fragment in self.fragments for file in fragment.files]

    @property
    def _properties(self) -> dict[str, str]:
        return self.transaction.transaction_properties or {}


def open_staged(target: ResolvedTable, version: int) -> StagedVersion:
    """Open a staged version.

    Raises:
        TableVersionNotFoundError: (11) there is none with this number.
    """
    target.check_version(version)
    file = target.dataset.manifests.stat(f"{VERSIONS}/{detached_name(version)}")
    staged = None if file is None else _staged(target, file)
    if staged is None:
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id}: version {version} was not staged by this package"
        )
    return staged


def staged_versions(target: ResolvedTable) -> Iterator[StagedVersion]:
    """Yield all staged versions of a table, by one listing and a manifest for each."""
    for file in target.dataset.manifests.below(VERSIONS):
        if detached_version_of(file.path) is not None and (staged := _staged(target, file)) is not None:
            yield staged


def find_staged(target: ResolvedTable, write: KeyedWrite) -> StagedVersion | None:
    """Return a version that was staged under a key with the same data; None if there is none."""
    of_key = (staged for staged in staged_versions(target) if staged.key == write.key)
    return next((staged for staged in of_key if write.is_done_by(staged.commit)), None)


def _staged(target: ResolvedTable, file: StoredFile) -> StagedVersion | None:
    """Return the version of a detached manifest; None if another client made it, or it was removed."""
    version = detached_version_of(file.path) or 0
    try:
        dataset = target.open(version)
    except ValueError:
        if target.dataset.manifests.stat(file.path) is not None:
            raise
        return None
    transaction = dataset.read_transaction(version)
    spec = None if transaction is None else (transaction.transaction_properties or {}).get(_STAGED)
    parsed = None if spec is None else ChangeSpec.parse(spec)
    if transaction is None or parsed is None or not _is_ours(transaction):
        return None
    return StagedVersion(version, file.path, file.modified, parsed, dataset.schema, transaction)


def _is_ours(transaction: Transaction) -> bool:
    """Return whether it has what this package writes: a key and fragments; another client's may not."""
    operation: Any = transaction.operation
    return IDEMPOTENCY_KEY in (transaction.transaction_properties or {}) and any(
        hasattr(operation, name) for name in ("new_fragments", "fragments")
    )


def stage(
    target: ResolvedTable,
    write: KeyedWrite,
    change: TableChange,
    counts: Counts,
    spec: ChangeSpec,
    lease: WriteLease,
) -> CommitOutcome:
    """Stage a change: commit it as a detached version that follows the version onto which it was written.

    That version is tagged, so that no clean-up removes it or its files while they are needed.

    Args:
        target: the table.
        write: what identifies the write.
        change: the fragments, and what they do.
        counts: what was written.
        spec: how the change is made again when it is published.
        lease: the lease of the write.

    Raises:
        ConcurrentModificationError: (14) the table was removed or restored, or that version cleaned up.
    """
    from lance import LanceDataset, Transaction

    if (target.latest_version() or 0) < spec.base:
        raise _gone(target, spec.base)
    # A detached version concerns no version authority: it is committed by path.
    try:
        base = replace(target.dataset, version_authority=None).open(spec.base)
    except ValueError as error:
        if target.dataset.manifests.find(spec.base) is not None:
            raise
        raise _gone(target, spec.base) from error
    step = change.apply_to(base)
    commit = KeyedCommit(
        spec.base,
        str(uuid.uuid4()),
        step.counts_with(counts),
        write.fingerprint,
        write.execution_id,
        kind=change.kind,
    )
    properties = {**commit.as_properties(write.key), **spec.as_properties()}
    transaction = Transaction(spec.base, step.operation, commit.uuid, properties)
    lease.check()
    try:
        create_tag(base, target.dataset.manifests, tag_of(commit.uuid), spec.base)
    except spec_errors.TableVersionNotFoundError as error:
        raise _gone(target, spec.base) from error
    made = LanceDataset.commit(base, transaction, read_version=spec.base, detached=True)
    return CommitOutcome(replace(commit, version=made.version), "done")


def _gone(target: ResolvedTable, version: int) -> spec_errors.ConcurrentModificationError:
    return spec_errors.ConcurrentModificationError(
        f"table {target.id}: version {version}, on which this write is based, was removed meanwhile; "
        "nothing was staged, run it again"
    )


EXPIRES_AFTER = timedelta(days=6)
"""A clean-up by any client of Lance removes files that no published version refers to after seven days."""


def staged_nothing(staged: object) -> bool:
    """Return whether a write with ``stage=True`` had no rows, by its result or its XCom.

    It has then the newest version at its time, which others made.
    """
    outcome = staged.get("outcome") if isinstance(staged, Mapping) else getattr(staged, "outcome", None)
    return outcome == "unchanged"


@observed("publish")
def publish_version(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    version: int,
    *,
    is_empty: bool = False,
    location: str | None = None,
) -> WriteResult:
    """Make a staged version the table's next version, without copying its files.

    It is committed under the idempotency key of its write, so that a repetition finds the commit. Rows that
    others wrote since it was staged are treated as by the write itself: an append and an upsert are applied
    to them, an overwrite is refused if there are any.

    See `Table.publish` for its errors.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        version: the `version` in the result of a write with ``stage=True``. If that write found its rows
            published by an earlier run, it is that version, and nothing is left to do.
        is_empty: whether that write had no rows, see `staged_nothing`.
        location: where the table was that the write staged the version of; None if that isn't known.

    Returns:
        The version with the rows, and what was written for it; the newest version if there were no rows.
    """
    with resolved_table(namespace, table) as target:
        target.check_location(location, version)
        if is_empty:  # what others wrote, then or since, isn't reported as published here
            last = KeyedCommit(target.latest_version() or version)
            result = last.result(target, time.monotonic(), "unchanged")
            return replace(result, operation="publish")
        if not is_detached(version):
            return _published(target, version)
        # Before the version is opened: a discard removes its manifest, and then looks for leases.
        with acquire_lease(target.dataset).kept_alive(end=True) as lease:
            staged = open_staged(target, version)
            lookup = look_up(target, WriteIdentity(staged.key, on_existing_key="skip"))
            found = _published_as(lookup, staged)
            outcome = CommitOutcome(found, "found") if found else _publish(lookup, staged, lease)
            target.dataset.manifests.remove_outdated(staged.tag)
            result = outcome.commit.result(target, lookup.started, outcome.outcome, key=staged.key)
            newest = None if outcome.made_here else lookup.version
            result = replace(result, operation="publish", newest_version=newest)
    did = "published" if outcome.made_here else "an earlier run had published"
    _log.info("table %s: %s staged version %d as version %d", result.table, did, version, result.version)
    return result


def discard_version(namespace: NamespaceSpec | LanceNamespace, table: TableId | str, version: int) -> bool:
    """Discard a staged version, with the files that were written for it.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        version: the `version` in the result of a write with ``stage=True``.

    Returns:
        Whether there was such a version. The rows of a published version remain.

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
        _discard(target, staged)
    _log.info("table %s: discarded staged version %d", target.id, version)
    return True


def discard_repeated(target: ResolvedTable, write: KeyedWrite, made: int | None) -> None:
    """Discard what earlier executions have staged under the key of a write that was staged again.

    Args:
        target: the table.
        write: what identifies the write.
        made: its staged version; None if it had no rows.
    """
    if write.policy not in ("redo", "redo_if_changed"):
        return
    files = target.dataset.manifests
    for staged in list(staged_versions(target)):
        # What was published has no tag any more, and its number is still found by who was given it.
        if staged.key == write.key and staged.version != made and files.stat(staged.tag) is not None:
            _discard(target, staged)
            _log.info(
                "table %s: %s takes the place of staged version %d, which an earlier execution staged under "
                "the same key and nobody has published",
                target.id,
                "a write without rows" if made is None else f"staged version {made}",
                staged.version,
            )


def _discard(target: ResolvedTable, staged: StagedVersion) -> None:
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
                staged.version,
                shown_location(format_examples(foreign)),
            )


def _may_be_published(latest: LanceDataset | None, staged: StagedVersion) -> bool:
    """Return whether a version may refer to the files, also a kept version that a Restore has undone."""
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
    if found is None or found.version <= staged.spec.repeats:
        return None
    others = staged.commit.execution_id and found.execution_id not in ("", staged.commit.execution_id)
    if others or not staged.write.is_done_by(found):
        raise spec_errors.InvalidInputError(
            f"table {lookup.target.id}: version {found.version} was published under idempotency key "
            f"{staged.key!r} with other data; discard staged version {staged.version}"
        )
    return found


def _published(target: ResolvedTable, version: int) -> WriteResult:
    """Return the result of the write that made a version."""
    transaction = read_transaction(open_version(target, version), version)
    found = KeyedCommit(version) if transaction is None else KeyedCommit.of(version, transaction)
    result = found.result(target, time.monotonic(), "found")
    return replace(result, operation="publish", newest_version=target.latest_version())


def _publish(lookup: KeyLookup, staged: StagedVersion, lease: WriteLease) -> CommitOutcome:
    target = lookup.target
    with _keeping_files(lookup, staged):
        _check_complete(target, staged)
        committer = Committer(target, staged.write, staged.commit.counts, lease=lease)
        outcome = committer.commit(StagedChange.of(target, staged), lookup.version)
    if staged.spec.replaces_all:
        target.update_catalog_columns(staged.schema)
    return outcome


@contextlib.contextmanager
def _keeping_files(lookup: KeyLookup, staged: StagedVersion) -> Iterator[None]:
    """Keep its files from clean-ups for the duration of the block, if it was published before, and undone.

    The files of versions that were undone are removed with the last of these versions, however young they
    are.

    Raises:
        ConcurrentModificationError: (14) a clean-up may be removing that version; the block isn't executed.
    """
    latest = lookup.latest
    undone = None if latest is None else _undone_version(lookup.target, latest, staged)
    with contextlib.ExitStack() as kept:
        if latest is not None and undone is not None:
            # If it was cleaned up meanwhile, its files are gone by now.
            with contextlib.suppress(spec_errors.TableVersionNotFoundError):
                kept.enter_context(temporary_tag(latest, lookup.target.dataset.manifests, undone))
        yield


def _undone_version(target: ResolvedTable, latest: LanceDataset, staged: StagedVersion) -> int | None:
    """Return a version with files of a staged version: its publication, or a version that followed it."""
    if not is_used(target, staged.key):
        return None
    files = frozenset(staged.files)
    for version in sorted(target.dataset.manifests.all(), reverse=True):
        if staged.spec.base < version <= latest.version:
            opened = kept_version(latest, version)
            if opened is not None and not files.isdisjoint(referenced_files(opened)):
                return version
    return None


@dataclass(frozen=True, slots=True)
class StagedChange(TableChange):
    """The change of a staged version: as it was staged, or made again if others have committed since."""

    target: ResolvedTable
    staged: StagedVersion

    @property
    def kind(self) -> str:
        """See `TableChange.kind`: the kind of the staged write."""
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
        if latest is None or not isinstance(change, AppendCommit):
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
        # Lance reads it back with an update mode, see `UpsertCommit`: its indices would lack the new rows.
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
        deletions = [
            (fragment.id, fragment.deletion_file)
            for fragment in changed
            if fragment.deletion_file is not None
        ]
        paths = [file.path(fragment) for fragment, file in deletions]
        return not self.target.dataset.manifests.missing(paths)


def _check_complete(target: ResolvedTable, staged: StagedVersion) -> None:
    if foreign := staged.foreign_paths:
        raise spec_errors.InvalidTableStateError(
            f"table {target.id}: staged version {staged.version} names files outside of the table, such as "
            f"{shown_location(format_examples(foreign))}: another client made it; discard it"
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
            f"{format_examples(missing)}; discard it, and write it again"
        )
