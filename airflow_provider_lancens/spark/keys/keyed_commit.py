"""Properties that a commit has in its transaction: its key, its kind, its counts and its execution."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens.namespace.storage.json_records import whole_number
from airflow_provider_lancens.spark.keys.commit_lineage import LINEAGE, Lineage
from airflow_provider_lancens.spark.results import Outcome, WriteResult, changes_nothing, elapsed

if TYPE_CHECKING:
    from lance import Transaction

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


IDEMPOTENCY_KEY = "lancens.idempotency_key"
_FINGERPRINT = "lancens.fingerprint"
_EXECUTION_ID = "lancens.execution_id"
_KIND = "lancens.kind"
_PREFIX = "lancens."
_COUNTS = ("rows", "files", "bytes", "updated", "deleted")
APPEND, OVERWRITE, REDONE_APPEND = "append", "overwrite", "redone_append"
UPSERT, REPLACE_WHERE, DELETION, RESTORE = "upsert", "replace_where", "deletion", "restore"
REPLACE_VALUES = "replace_values"
"""Kinds of commits; the kind of an overwrite with a condition is followed by a digest of the condition."""
_OPERATIONS = {
    APPEND: "append",
    REDONE_APPEND: "append",
    OVERWRITE: "overwrite",
    REPLACE_WHERE: "overwrite",
    REPLACE_VALUES: "overwrite",
    UPSERT: "upsert",
    DELETION: "delete",
    RESTORE: "restore",
}
"""The operations of results by kinds of commits."""
_LANCE_OPERATIONS = {
    "CreateIndex": "create_index",
    "DataReplacement": "compute_column",
    "Merge": "add_columns",
    "Project": "alter_columns",
    "Rewrite": "compact",
}
"""The operations by Lance's names, where Lance's name differs from the verb's."""
REPLACING_ALL = frozenset({OVERWRITE, REDONE_APPEND})
"""Kinds of commits after which nothing is left of what the key has written before."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows, files and bytes of a write."""

    rows: int = 0
    files: int = 0
    bytes: int = 0
    updated: int | None = None
    """The rows of the table that an upsert replaced; None for other writes."""
    deleted: int | None = None
    """The rows of the table that were removed, rather than replaced by an upsert; None if it isn't known."""

    @property
    def inserted(self) -> int:
        """The rows that were added."""
        return max(0, self.rows - (self.updated or 0))

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


def operation_of_kind(kind: str) -> str:
    """Return the operation of a commit of this kind, as in a result; empty if that isn't known."""
    return _OPERATIONS.get(kind.partition("/")[0], "")


def operation_of(transaction: Transaction) -> str:
    """Return the operation of a transaction, as in a result; of other clients, as far as it is known."""
    name = type(transaction.operation).__name__
    return (
        operation_of_kind((transaction.transaction_properties or {}).get(_KIND, ""))
        or _LANCE_OPERATIONS.get(name)
        or name.lower()
    )


@dataclass(frozen=True, slots=True)
class KeyedCommit:
    """A commit with an idempotency key."""

    version: int
    uuid: str = ""
    """The transaction's UUID, different for each commit. Empty if only the version is known."""
    counts: Counts = field(default_factory=Counts)
    fingerprint: str = ""
    """The digest of what was written; empty if none was given."""
    execution_id: str = ""
    """The execution that made it, which distinguishes a retry from a repetition; empty if none was given."""
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

    @property
    def operation(self) -> str:
        """The operation of the commit, as in a result; ``write`` if it isn't known."""
        return _OPERATIONS.get(self.kind.partition("/")[0], "write")

    def result(
        self, target: ResolvedTable, started: float, outcome: Outcome, *, key: str | None = None
    ) -> WriteResult:
        """Return the result of the call that made or found it.

        Args:
            target: the table.
            started: when the call began, by the monotonic clock.
            outcome: what that call did.
            key: the idempotency key that was given.
        """
        return WriteResult(
            table=str(target.id),
            location=target.dataset.location,
            operation=self.operation,
            outcome=outcome,
            version=self.version,
            previous_version=self.version if changes_nothing(outcome) else self.version - 1 or None,
            inserted=self.counts.inserted,
            updated=self.counts.updated or 0,
            deleted=self.counts.deleted or 0,
            files=self.counts.files,
            bytes=self.counts.bytes,
            key=key,
            seconds=elapsed(started),
        )


_UNIQUE = re.compile(r"once-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Pattern of the keys of `unique_key`; no key of a user matches it."""


def unique_key() -> str:
    """Return a key for a write that has none: it is never looked up, so it gets no records."""
    return f"once-{uuid.uuid4()}"


def is_unique(key: str) -> bool:
    """Return whether a key is of a write that has none, and which therefore has no records."""
    return _UNIQUE.fullmatch(key) is not None


def has_records(transaction: Transaction) -> bool:
    """Return whether a transaction was committed under a key, after that got its record."""
    properties = transaction.transaction_properties or {}
    key = properties.get(IDEMPOTENCY_KEY, "")
    return bool(key) and not is_unique(key) and LINEAGE in properties
