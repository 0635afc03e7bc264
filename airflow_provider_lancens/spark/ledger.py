"""What was committed under an idempotency key: told by the table's history, and beyond that by its entry.

A key stands in the transaction of its commit for as long as the version is kept. A metastore's entry
remembers the newest few beyond that, see `namespace.writes`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.namespace.writes import Write, digest
from airflow_provider_lancens.spark.history import Commit, Counts, came_through, find_commit, forgets
from airflow_provider_lancens.spark.target import Target

if TYPE_CHECKING:
    from lance import LanceDataset

_log = logging.getLogger(__name__)


def find(target: Target, latest: LanceDataset | None, key: str, after: int = 0) -> Commit | None:
    """The newest commit under an idempotency key.

    Args:
        target: the table.
        latest: its data set at its latest version; None where there is none yet.
        key: the idempotency key.
        after: look only at versions above this one, which were not looked at before.
    """
    found = find_commit(latest, key, after)
    if found is not None or latest is None or target.memory is None or not forgets(latest, after):
        return found
    write = target.memory.find_write(target.parts, key)
    if write is None or write.version <= after or not came_through(latest, write.version):
        return None
    counts = Counts(write.rows, write.files, write.bytes)
    return Commit(write.version, "", counts, write.fingerprint)


def remember(target: Target, key: str, commit: Commit) -> None:
    """Let the table's entry remember a commit; where that fails, a rerun under the key does it.

    Args:
        target: the table.
        key: the commit's idempotency key.
        commit: what was made, or found.
    """
    if target.memory is None:
        return
    try:
        target.memory.note_write(target.parts, as_write(key, commit))
    except LanceNamespaceError as error:
        _log.warning(
            "Table %s: version %d is committed, but the metastore doesn't remember its key: a rerun is told "
            "by the table's history alone, as long as that version is kept: %s",
            target.id,
            commit.version,
            error,
        )


def as_write(key: str, commit: Commit) -> Write:
    """A commit as an entry remembers it."""
    counts = commit.counts
    return Write(digest(key), commit.version, commit.fingerprint, counts.rows, counts.files, counts.bytes)
