"""The lookup of the commits under a write's key, and what its policy, `on_existing_key`, makes of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.spark.keys.key_records import (
    KeyIndex,
    digest,
    folder_of,
    records_in,
    remove_leftovers,
)
from airflow_provider_lancens.spark.keys.key_search import ListedRecords, RecordSearch, list_records
from airflow_provider_lancens.spark.keys.keyed_commit import (
    APPEND,
    REPLACING_ALL,
    KeyedCommit,
    is_unique,
    unique_key,
)
from airflow_provider_lancens.spark.options import OnExistingKey, WriteIdentity
from airflow_provider_lancens.spark.results import Outcome, WriteResult
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace


REPEATING = frozenset({"redo", "write_again"})
"""The policies under which another execution makes a write even if its data is the same."""


@dataclass(frozen=True, slots=True)
class KeyedWrite:
    """The identity of a write, with its policy for other commits under its key. Picklable."""

    key: str
    fingerprint: str = ""
    """The digest of what is to be written; empty if none was given."""
    policy: OnExistingKey = "skip"
    execution_id: str = ""
    """The same for all tries of one execution, another one for each repetition. Empty if there is none."""
    above: int = 0
    """The version up to which commits under the key are ignored: this write repeats or replaces them."""

    def is_done_by(self, found: KeyedCommit) -> bool:
        """Return whether a commit under the key is the same write."""
        if self.is_own(found):
            return True  # even if the fingerprint differs, as it does if it contains a clock
        if self.policy in REPEATING or self.lacks_fingerprint:
            return False
        return not found.fingerprint or not self.fingerprint or found.fingerprint == self.fingerprint

    @property
    def lacks_fingerprint(self) -> bool:
        """Whether its data can't be compared with that of another execution, although its policy does so."""
        return self.policy == "redo_if_changed" and not self.fingerprint and not is_unique(self.key)

    def is_own(self, found: KeyedCommit) -> bool:
        """Return whether a try of the same execution made a commit under the key."""
        return bool(self.execution_id) and found.execution_id == self.execution_id

    def ignores(self, found: KeyedCommit) -> bool:
        """Return whether the write is made in addition to a commit."""
        return self.policy == "write_again" and not self.is_done_by(found)


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """A table, and the commits in its history under the key of a write that begins now."""

    target: ResolvedTable
    identity: WriteIdentity
    write: KeyedWrite
    latest: LanceDataset | None
    """The dataset at its newest version; None if nothing was written yet."""
    version: int
    """The version up to which the history was searched; 0 if there was none."""
    started: float
    """When it began, by the monotonic clock."""
    earlier: KeyedCommit | None = None
    """The commit by which an earlier run has made the same write."""
    repeated: KeyedCommit | None = None
    """The newest commit under the key, if another execution made it and this write is made again."""
    replaced: Sequence[KeyedCommit] = ()
    """The commits under the key whose rows this write is to replace, newest first."""

    def found_outcome(self, commit: KeyedCommit) -> Outcome:
        """Return the outcome of a write that isn't made, since a commit was found under its key."""
        return "found" if self.write.is_own(commit) else "skipped"

    def found_result(self, commit: KeyedCommit) -> WriteResult:
        """Return the result of a write that isn't made, since a commit was found under its key."""
        outcome = self.found_outcome(commit)
        result = commit.result(self.target, self.started, outcome, key=self.identity.key)
        return result if outcome == "found" else replace(result, newest_version=self.version)

    def check_fingerprint(self) -> None:
        """Check that the write has a fingerprint, if its policy needs one.

        Raises:
            InvalidInputError: (13) it has none.
        """
        if self.write.lacks_fingerprint:
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: fingerprint: on_existing_key='redo_if_changed' compares it with "
                "that of the earlier write, and none was given, or the files of the source are gone; nothing "
                "was written. Set it to what identifies the data, or use on_existing_key='redo'"
            )

    def check_same_data(self, commit: KeyedCommit) -> None:
        """Check that a commit under the key has the fingerprint of the write, if both have one.

        Raises:
            InvalidInputError: (13) it has another one.
        """
        fingerprints = {commit.fingerprint, self.write.fingerprint}
        if "" not in fingerprints and len(fingerprints) > 1:
            raise _different_data(self, commit)

    def at_newest(self) -> Self:
        """Return this with the newest dataset, for a write that waited; the key isn't looked up again."""
        return replace(self, latest=self.target.open_latest(self.latest))


def look_up(
    target: ResolvedTable,
    identity: WriteIdentity,
    *,
    replaces_rows: bool = True,
    may_be_staged: bool = False,
    opened: LanceDataset | None = None,
) -> KeyLookup:
    """Look up the commits of a table under the key of a write that begins now.

    Args:
        target: the table.
        identity: what identifies the write.
        replaces_rows: whether the write, if it is made again, removes the rows of its earlier commits, which
            are then looked up too.
        may_be_staged: whether an earlier try may have staged the write instead: the caller checks the
            fingerprint, see `KeyLookup.check_fingerprint`, once it has found that none did.
        opened: the dataset at its newest version, as another lookup has just opened it; None opens it.

    Raises:
        InvalidInputError: (13) the key was committed with other data, and `on_existing_key` is "skip"; or it
            has expired; or "redo_if_changed" has no fingerprint to compare with another execution's.
        InvalidTableStateError: (19) it cannot be determined whether the key was committed, or what it has
            committed besides.
    """
    started, policy = time.monotonic(), identity.on_existing_key
    write = KeyedWrite(
        unique_key() if identity.key is None else identity.key,
        digest(identity.fingerprint) if identity.fingerprint else "",
        policy,
        str(identity.execution_id or ""),
    )
    latest, listed = (opened, None) if opened is not None else _open(target, write.key)
    lookup = KeyLookup(target, identity, write, latest, 0 if latest is None else latest.version, started)
    search = _search(lookup, listed)
    found = None if search is None else _find(lookup, search)
    if found is not None and write.is_done_by(found):
        return replace(lookup, earlier=found)
    if not may_be_staged:
        lookup.check_fingerprint()
    if found is not None and policy == "skip":
        raise _different_data(lookup, found)
    if found is None and policy != "write_again":
        return lookup
    above = replace(write, above=lookup.version)
    replaced = _replaced(search) if replaces_rows and search is not None and policy != "write_again" else ()
    return replace(lookup, write=above, repeated=found, replaced=replaced)


def is_used(target: ResolvedTable, key: str) -> bool:
    """Return whether a commit under a key was ever announced, by one listing."""
    return bool(records_in(target.dataset.manifests.below(folder_of(digest(key)))))


def _open(target: ResolvedTable, key: str) -> tuple[LanceDataset | None, ListedRecords | None]:
    """Open the newest version; on an object store, list the records of the key meanwhile."""
    if is_unique(key) or is_local(target.dataset.location):
        return target.open_latest(), None
    # Looked up before the records are listed, so that these include all attempts up to this version.
    newest = target.newest_version()
    if newest is None:
        return None, None
    with ThreadPoolExecutor(1, thread_name_prefix="lance-keys") as pool:
        listing = pool.submit(list_records, target.dataset.manifests, key)
        latest = target.open(int(newest.version), newest)
    return latest, listing.result()


def _search(lookup: KeyLookup, listed: ListedRecords | None) -> RecordSearch | None:
    """List the records of the key; None if there is nothing to search."""
    target, latest, write = lookup.target, lookup.latest, lookup.write
    if latest is None:
        remove_leftovers(target.dataset.manifests, lambda: target.latest_version() is not None)
        return None
    if is_unique(write.key):
        return None
    try:
        return RecordSearch.of(target, latest, write.key, listed)
    except spec_errors.InvalidTableStateError:  # a file of the records is unreadable
        if write.policy != "write_again":
            raise
        return None


def _find(lookup: KeyLookup, search: RecordSearch) -> KeyedCommit | None:
    """Return the newest commit under the key; a commit that a Restore undid counts as never made.

    Raises:
        InvalidInputError: (13) the key has expired.
        InvalidTableStateError: (19) it cannot be determined whether the key was committed.
    """
    writes_regardless = lookup.write.policy == "write_again"
    try:
        found = search.commit()
    except spec_errors.InvalidTableStateError:
        if not writes_regardless:
            raise
        return None
    if found is None and not writes_regardless:
        search.check_not_lost()
    return found


def _replaced(search: RecordSearch) -> tuple[KeyedCommit, ...]:
    """Return the commits with all that is left of what the key wrote, newest first.

    Raises:
        InvalidInputError: (13) older ones have expired.
        InvalidTableStateError: (19) it cannot be determined which they are.
    """
    found: list[KeyedCommit] = []
    for commit in search.commits():
        found.append(commit)
        if commit.kind in REPLACING_ALL or commit.version == 1:
            return tuple(found)
    if all(commit.kind in (APPEND, "") for commit in found):  # other kinds remove no rows of older commits
        search.check_has_all(found[-1])
    return tuple(found)


def _different_data(lookup: KeyLookup, found: KeyedCommit) -> spec_errors.InvalidInputError:
    from airflow_provider_lancens.namespace.error_types import DifferentDataError

    write = lookup.write
    return DifferentDataError(
        f"table {lookup.target.id}: version {found.version} was committed under idempotency key "
        f"{write.key!r} with different data (fingerprint {found.fingerprint}, now {write.fingerprint}); "
        "nothing was written. Use another key to write this data as well, or on_existing_key='redo' to write "
        "it in place of that version's data; in Airflow, the configuration of a run "
        '{"lance_on_existing_key": "redo"} does that without a change of the DAG'
    )


def find_write(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    key: str,
    *,
    fingerprint: str | None = None,
    on_existing_key: OnExistingKey = "skip",
    execution_id: str | None = None,
) -> WriteResult | None:
    """Return the result of an earlier write under this key, without Spark.

    `fingerprint` identifies the data that would be written now; None matches any. With ``redo`` or
    ``write_again`` as `on_existing_key`, a write of another execution than `execution_id` doesn't count: the
    write is still to be made. See `Table.find_write` for its errors.

    Returns:
        The result of that call; None if the write is still to be made.
    """
    identity = WriteIdentity(key, fingerprint, on_existing_key, execution_id)
    with resolved_table(namespace, table) as target:
        lookup = look_up(target, identity)
        return None if lookup.earlier is None else lookup.found_result(lookup.earlier)


def confirm_write(namespace: NamespaceSpec | LanceNamespace, table: TableId | str, key: str) -> None:
    """Record that the rows of a write under this key are in the table, where that can't be determined.

    Other clients cleaned up its version and all that would show whether it was committed, or whether others
    have undone it. Call this if its rows are in the table; the next run then skips the write.

    See `Table.confirm_write` for its arguments and other errors.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
    """
    with resolved_table(namespace, table) as target:
        latest = target.open_latest()
        search = None if latest is None else RecordSearch.of(target, latest, key)
        if search is not None and search.confirm():
            return
        if search is not None and search.may_be_lost:
            raise spec_errors.InvalidInputError(
                f"table {target.id}: idempotency key {key!r} can't be confirmed, since no record of it is "
                "left to say which version has its rows; if they are in the table, mark its task as success, "
                "rather than running it again"
            )
        raise spec_errors.InvalidInputError(
            f"table {target.id}: no write under idempotency key {key!r} is in doubt, so there is nothing to "
            "confirm"
        )


def accept_lost_keys(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> None:
    """Let idempotency keys without records count as never committed, although records were lost.

    The records of keys, beside the data, were removed, and so were versions that would show what was
    committed; until this is called, writes under keys without records are refused. Call it if none of the
    keys that will run again was committed in these versions, or if their rows may be written twice.

    See `Table.accept_lost_keys` for its errors.
    """
    with resolved_table(namespace, table) as target:
        index = KeyIndex.of(target.dataset.manifests)
        if not index.has_lost:
            raise spec_errors.InvalidInputError(
                f"table {target.id}: no records of keys are known to be lost, so there is nothing to accept"
            )
        index.accept_lost()
