"""What was committed to a data set: its transactions, newest first, and the keys they carry.

A commit carries its idempotency key and its counts in the transaction's properties, so a repeated
run finds itself in the storage alone, for as long as the version is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

IDEMPOTENCY_KEY = "lancens.idempotency_key"
_FINGERPRINT = "lancens.fingerprint"
_ROWS, _FILES, _BYTES = "lancens.rows", "lancens.files", "lancens.bytes"

_READ_AHEAD = 16
_MAINTENANCE = frozenset({"Rewrite", "CreateIndex", "UpdateConfig", "BaseOperation", "UpdateMemWalState"})
_UNREADABLE = "RewrittenIndex"


@dataclass(frozen=True, slots=True)
class Counts:
    """What a write brought into the table."""

    rows: int = 0
    files: int = 0
    bytes: int = 0

    def __add__(self, other: Self) -> Counts:
        return Counts(self.rows + other.rows, self.files + other.files, self.bytes + other.bytes)

    def as_properties(self, key: str, fingerprint: str = "") -> dict[str, str]:
        """The transaction properties of a write under this idempotency key."""
        return {
            IDEMPOTENCY_KEY: key,
            **({_FINGERPRINT: fingerprint} if fingerprint else {}),
            _ROWS: str(self.rows),
            _FILES: str(self.files),
            _BYTES: str(self.bytes),
        }

    @classmethod
    def from_properties(cls, properties: dict[str, str]) -> Self:
        """What `as_properties` wrote; zeros where another writer used the key."""
        return cls(*(int(properties.get(name, "0")) for name in (_ROWS, _FILES, _BYTES)))


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that carries an idempotency key."""

    version: int
    uuid: str
    """The transaction's own: tells two commits under one key apart. Empty where only an entry knows it."""
    counts: Counts
    fingerprint: str = ""
    """The digest of what was written; empty where nobody said."""

    def brought(self, fingerprint: str) -> bool:
        """Whether it brought what has this fingerprint; one that has none is equal to any."""
        return not self.fingerprint or not fingerprint or self.fingerprint == fingerprint

    @property
    def previous_version(self) -> int | None:
        """The version it follows; None where it created the data set."""
        return self.version - 1 or None


def find_commit(dataset: LanceDataset | None, key: str, after: int = 0) -> Commit | None:
    """The newest commit under an idempotency key.

    Args:
        dataset: the data set, opened at its latest version; None where there is none yet.
        key: the idempotency key.
        after: look only at versions above this one, which were not looked at before.

    Returns:
        The commit, or None. What a Restore took back counts as never committed: it isn't in the table.
    """
    if dataset is None:
        return None
    for version, transaction in _transactions(dataset, after):
        properties = transaction.transaction_properties or {}
        if properties.get(IDEMPOTENCY_KEY) == key:
            counts, fingerprint = Counts.from_properties(properties), properties.get(_FINGERPRINT, "")
            return Commit(version, transaction.uuid, counts, fingerprint)
    return None


def forgets(dataset: LanceDataset, since: int) -> bool:
    """Whether any version above `since` was cleaned up, and can't tell what it brought."""
    return since < dataset.version and bool(
        set(range(since + 1, dataset.version + 1)) - set(_kept_versions(dataset))
    )


def came_through(dataset: LanceDataset, version: int) -> bool:
    """Whether a data set, as it is, came from a version that was cleaned up.

    A version that is kept speaks for itself, one beyond the newest was another data set's, and one that
    a Restore went back behind isn't in the table.
    """
    if version > dataset.version or version in _kept_versions(dataset):
        return False
    for later, transaction in _transactions(dataset, after=version):
        restored = _restored_version(transaction)
        if restored is not None and restored < version < later:
            return False
    return True


def data_changed(dataset: LanceDataset, since: int) -> bool:
    """Whether any version above `since` changed rows or columns, or might have; maintenance doesn't."""
    return forgets(dataset, since) or any(
        type(transaction.operation).__name__ not in _MAINTENANCE
        for _, transaction in _transactions(dataset, since)
    )


def read_transaction(dataset: LanceDataset, version: int) -> Transaction | None:
    """The transaction that made a version; None where the version isn't kept."""
    return _read(dataset, version) if version in _kept_versions(dataset) else None


def _transactions(dataset: LanceDataset, after: int) -> Iterator[tuple[int, Transaction]]:
    """The transactions that led from version `after` to the data set as it is, newest first."""
    newest = dataset.version
    for version, transaction in _read_ahead(dataset, _kept_versions(dataset)):
        if version <= after:
            return
        if transaction is None or version > newest:
            continue
        yield version, transaction
        if (restored := _restored_version(transaction)) is not None:
            # The history goes on there, perhaps through versions that were undone before.
            newest, after = restored, 0


def _read_ahead(dataset: LanceDataset, versions: Sequence[int]) -> Iterator[tuple[int, Transaction | None]]:
    """The versions' transactions; what is wanted is mostly among the newest, so it starts small."""
    start, size = 0, 1
    with ThreadPoolExecutor(_READ_AHEAD, thread_name_prefix="lance-history") as pool:
        while start < len(versions):
            block = versions[start : start + size]
            yield from zip(block, pool.map(partial(_read, dataset), block), strict=True)
            start, size = start + size, min(2 * size, _READ_AHEAD)


def _kept_versions(dataset: LanceDataset) -> list[int]:
    return sorted((reference["version"] for reference in dataset.version_refs()), reverse=True)


def _read(dataset: LanceDataset, version: int) -> Transaction | None:
    try:
        # On a handle of its own: a Lance data set refuses to be read by two threads at once.
        return dataset.checkout_version(version).read_transaction(version)
    except (OSError, ValueError):
        if version in _kept_versions(dataset):
            raise
        return None  # a clean-up removed it while we were reading
    except TypeError as error:
        if _UNREADABLE not in str(error):
            raise
        return _compaction_at(version)


def _compaction_at(version: int) -> Transaction:
    # It says which indices it carried along, and there pylance 14 fails; no key of ours is in it.
    from lance import LanceOperation, Transaction

    return Transaction(version - 1, LanceOperation.Rewrite([], []))


def _restored_version(transaction: Transaction) -> int | None:
    from lance import LanceOperation

    operation = transaction.operation
    return int(operation.version) if isinstance(operation, LanceOperation.Restore) else None
