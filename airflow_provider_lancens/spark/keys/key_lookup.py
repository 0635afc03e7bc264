"""Look up an idempotency key before any work: what was committed under it, and what is to be written."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import is_local
from airflow_provider_lancens.spark.keys.key_index import KeyIndex, remove_leftovers
from airflow_provider_lancens.spark.keys.key_records import (
    digest,
    folder_of,
    is_unique,
    records_in,
    unique_key,
)
from airflow_provider_lancens.spark.keys.keyed_commit import REPLACING_ALL, KeyedCommit, KeyedWrite
from airflow_provider_lancens.spark.keys.record_search import ListedRecords, RecordSearch, list_records
from airflow_provider_lancens.spark.options import WriteRequest
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """A table, and what its history contains under the key of a write that begins now."""

    target: ResolvedTable
    request: WriteRequest
    write: KeyedWrite
    latest: LanceDataset | None
    """The dataset at its newest version; None if nothing was written yet."""
    version: int
    """The version up to which the history was searched; 0 if there was none."""
    started: float
    """When it began, by the monotonic clock."""
    earlier: KeyedCommit | None = None
    """The commit by which an earlier run has made the same write."""
    replaced: Sequence[KeyedCommit] = ()
    """The commits under the key that this write is to replace, newest first."""

    def found_result(self, commit: KeyedCommit) -> WriteResult:
        """Return the result of a write that isn't made, since a commit was found under its key."""
        result = commit.result(self.target.id, self.started, committed=False)
        if self.write.is_own(commit):
            return result
        return replace(result, skipped=True, newest_version=self.version)

    def at_newest(self) -> Self:
        """Return this with the newest dataset, for a write that waited; the key isn't looked up again."""
        return replace(self, latest=self.target.open_latest(self.latest))


def look_up(target: ResolvedTable, request: WriteRequest) -> KeyLookup:
    """Look up what a table contains under the key of a write that begins now.

    Raises:
        InvalidInputError: (13) the key was committed with other data, and `on_existing_key` is "skip"; or it
            has expired.
        InvalidTableStateError: (19) it cannot be determined whether the key was committed.
    """
    started, policy = time.monotonic(), request.on_existing_key
    key = request.idempotency_key
    if key is None:
        # What is staged is committed under its key by another call, which looks it up.
        key = unique_key() if request.publish else f"staged/{uuid.uuid4()}"
    write = KeyedWrite(
        key,
        digest(request.fingerprint) if request.fingerprint else "",
        policy,
        str(request.execution_id or ""),
    )
    latest, listed = _open(target, write.key)
    lookup = KeyLookup(target, request, write, latest, 0 if latest is None else latest.version, started)
    search = _search(lookup, listed)
    found = None if search is None else _find(lookup, search)
    if found is not None and write.is_done_by(found):
        return replace(lookup, earlier=found)
    if found is not None and policy == "skip":
        raise _different_data(lookup, found)
    if found is None and policy != "write_again":
        return lookup
    above = replace(write, above=lookup.version)
    replaced = () if search is None or policy == "write_again" else _replaced(search)
    return replace(lookup, write=above, replaced=replaced)


def is_used(target: ResolvedTable, key: str) -> bool:
    """Return whether a write under a key was ever begun, by one listing."""
    return bool(records_in(target.dataset.manifests.below(folder_of(digest(key)))))


def confirm_unknown(target: ResolvedTable, key: str) -> bool:
    """Record that the rows of attempts under a key, whose outcome cannot be determined, are in the table.

    Returns:
        Whether there was such an attempt.
    """
    latest = target.open_latest()
    return latest is not None and RecordSearch.of(target, latest, key).vouch()


def accept_lost(target: ResolvedTable) -> bool:
    """Let keys without records count as never committed, although records were lost.

    Returns:
        Whether they were.
    """
    index = KeyIndex.of(target.dataset.manifests)
    if index.has_lost:
        index.accept_lost()
    return index.has_lost


def _open(target: ResolvedTable, key: str) -> tuple[LanceDataset | None, ListedRecords | None]:
    """Open the newest version; on an object store, list the records of the key meanwhile."""
    if is_unique(key) or is_local(target.dataset.location):
        return target.open_latest(), None
    # Before the records are listed: the attempts up to this version are then among them.
    version = target.latest_version()
    if version is None:
        return None, None
    with ThreadPoolExecutor(1, thread_name_prefix="lance-keys") as pool:
        listing = pool.submit(list_records, target.dataset.manifests, key)
        latest = target.open(version)
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
    except spec_errors.InvalidTableStateError:  # the old write log can't be parsed
        if write.policy != "write_again":
            raise
        return None


def _find(lookup: KeyLookup, search: RecordSearch) -> KeyedCommit | None:
    """Return the newest commit under the key; one that a Restore undid counts as never committed.

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
    """Return the commits with all that is left of what the key wrote, newest first."""
    found: list[KeyedCommit] = []
    for commit in search.commits():
        found.append(commit)
        if commit.kind in REPLACING_ALL:
            break
    return tuple(found)


def _different_data(lookup: KeyLookup, found: KeyedCommit) -> spec_errors.InvalidInputError:
    write = lookup.write
    return spec_errors.InvalidInputError(
        f"table {lookup.target.id}: version {found.version} was committed under idempotency key "
        f"{write.key!r} with different data (fingerprint {found.fingerprint}, now {write.fingerprint}); "
        "nothing was written. Use another key to write this data as well, or on_existing_key='replace', "
        "where available, to replace that version's data; in Airflow, the configuration of a run "
        '{"lance_on_existing_key": "replace"} does that without a change of the DAG'
    )
