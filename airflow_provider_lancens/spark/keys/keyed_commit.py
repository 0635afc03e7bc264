"""Writes under an idempotency key, and the commits that they make.

A commit has its key and its counts in the properties of its transaction, and in the key's records.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens.namespace.storage.json_records import whole_number
from airflow_provider_lancens.spark.keys.commit_lineage import LINEAGE, Lineage
from airflow_provider_lancens.spark.options import OnExistingKey
from airflow_provider_lancens.spark.results import WriteResult

if TYPE_CHECKING:
    from lance import Transaction

    from airflow_provider_lancens.identifiers import TableId

IDEMPOTENCY_KEY = "lancens.idempotency_key"
_FINGERPRINT = "lancens.fingerprint"
_EXECUTION_ID = "lancens.execution_id"
_KIND = "lancens.kind"
_PREFIX = "lancens."
_COUNTS = ("rows", "files", "bytes", "updated", "deleted")
APPEND, OVERWRITE, REPLACEMENT = "append", "overwrite", "replacement"
UPSERT, REPLACE_WHERE, DELETION, RESTORE = "upsert", "replace_where", "deletion", "restore"
"""Kinds of commits; that of a `replace_where` is followed by a digest of its condition."""
REPLACING_ALL = frozenset({OVERWRITE, REPLACEMENT})
"""Kinds of commits after which nothing is left of what the key has written before."""
REPEATING = frozenset({"replace", "write_again"})
"""The policies under which a write is made even if the same data was committed under its key."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows, files and bytes of a write."""

    rows: int = 0
    files: int = 0
    bytes: int = 0
    updated: int | None = None
    """The rows of the table that an upsert replaced; None for other writes."""
    deleted: int | None = None
    """The rows of the table that an upsert deleted, rather than replaced; None for other writes."""

    @classmethod
    def parse(cls, texts: Mapping[str, Any]) -> Self:
        """Return the counts that have these texts by their names; others may be missing or no numbers."""
        found = {name: whole_number(texts.get(name)) for name in _COUNTS}
        return cls(**{name: count for name, count in found.items() if count is not None})

    def as_dict(self) -> dict[str, int]:
        """Return the counts that are known."""
        return {name: count for name, count in asdict(self).items() if count is not None}


def key_of(transaction: Transaction) -> str | None:
    """Return the idempotency key under which a transaction was committed; None if it has none."""
    return (transaction.transaction_properties or {}).get(IDEMPOTENCY_KEY)


@dataclass(frozen=True, slots=True)
class KeyedCommit:
    """A commit with an idempotency key."""

    version: int
    uuid: str = ""
    """The transaction's UUID, which tells commits under one key apart. Empty if only the version is known."""
    counts: Counts = field(default_factory=Counts)
    fingerprint: str = ""
    """The digest of what was written; empty if none was given."""
    execution_id: str = ""
    """The execution that made it, which tells a retry from a repetition; empty if none was given."""
    kind: str = ""
    """What the commit did; empty if that isn't known."""
    files: tuple[str, ...] = field(default=(), compare=False)
    """Data files that it added; a record has only the first ones."""
    lineage: Lineage | None = field(default=None, compare=False)
    """The lineage of the version below it; None for a commit that was found."""

    @classmethod
    def of(cls, version: int, transaction: Transaction) -> Self:
        """Return the commit that a transaction made, as its properties describe it."""
        properties = transaction.transaction_properties or {}
        # Another client that used the key may have omitted the counts.
        counts = Counts.parse({name: properties.get(f"{_PREFIX}{name}") for name in _COUNTS})
        fingerprint, execution_id = properties.get(_FINGERPRINT, ""), properties.get(_EXECUTION_ID, "")
        kind = properties.get(_KIND, "")
        return cls(version, transaction.uuid, counts, fingerprint, execution_id, kind)

    def as_properties(self, key: str) -> dict[str, str]:
        """Return the properties of its transaction, under this idempotency key."""
        given = {_FINGERPRINT: self.fingerprint, _EXECUTION_ID: self.execution_id}
        given[_KIND] = self.kind
        given[LINEAGE] = "" if self.lineage is None else self.lineage.text()
        return {
            IDEMPOTENCY_KEY: key,
            **{name: text for name, text in given.items() if text},
            **{f"{_PREFIX}{name}": str(count) for name, count in self.counts.as_dict().items()},
        }

    def result(self, table: TableId | str, started: float, *, committed: bool) -> WriteResult:
        """Return the result of the call that made or found it.

        Args:
            table: the table's identifier.
            started: when the call began, by the monotonic clock.
            committed: whether that call made it.
        """
        return WriteResult(
            table=str(table),
            version=self.version,
            previous_version=self.version - 1 or None,
            rows=self.counts.rows,
            files=self.counts.files,
            bytes=self.counts.bytes,
            inserted=None if self.counts.updated is None else max(0, self.counts.rows - self.counts.updated),
            updated=self.counts.updated,
            deleted=self.counts.deleted,
            seconds=round(time.monotonic() - started, 3),
            committed=committed,
        )


@dataclass(frozen=True, slots=True)
class KeyedWrite:
    """What identifies a write, and what it does about other commits under its key. Picklable."""

    key: str
    fingerprint: str = ""
    """The digest of what is to be written; empty if none was given."""
    policy: OnExistingKey = "skip"
    execution_id: str = ""
    """The same for all tries of one execution, another one for each repetition. Empty if there is none."""
    above: int = 0
    """Commits up to this version are the ones to be repeated or replaced, and are ignored."""

    def is_done_by(self, found: KeyedCommit) -> bool:
        """Return whether a commit under the key is the same write."""
        if self.is_own(found):
            return True  # even if the fingerprint differs, as it does if it contains a clock
        if self.policy in REPEATING:
            return False
        return not found.fingerprint or not self.fingerprint or found.fingerprint == self.fingerprint

    def is_own(self, found: KeyedCommit) -> bool:
        """Return whether a try of the same execution made a commit under the key."""
        return bool(self.execution_id) and found.execution_id == self.execution_id

    def ignores(self, found: KeyedCommit) -> bool:
        """Return whether the write is made in addition to a commit."""
        return self.policy == "write_again" and not self.is_done_by(found)
