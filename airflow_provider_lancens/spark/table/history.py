"""The commit history of a dataset: its transactions, newest first.

Which version an idempotency key committed isn't searched here, but in the key's records, see `spark.keys`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.namespace.storage.object_store import is_detached

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.fragment import DataFile, FragmentMetadata

COMPUTED_FILES = "computed-"
"""How the names of files begin that only add computed columns to a fragment, see `spark.compute`."""
_READ_AHEAD = 16
_FEW = 64
"""Number of versions that are tried one by one before the kept ones are listed."""
_MAINTENANCE = frozenset({"Rewrite", "CreateIndex", "UpdateConfig", "BaseOperation", "UpdateMemWalState"})
_UNREADABLE = "RewrittenIndex"


def data_changed(dataset: LanceDataset, since: int, newest: int | None = None) -> bool:
    """Return whether a version above `since` changed rows or columns, or might have; maintenance doesn't.

    Args:
        dataset: the dataset, opened at its latest version.
        since: the version to stop at.
        newest: the version to begin with; None is the latest one.
    """
    return any(
        transaction is None or not is_maintenance(transaction)
        for _, transaction in transactions(dataset, since, newest)
    )


def at_version(dataset: LanceDataset, version: int) -> LanceDataset:
    """Return a dataset opened at another of its versions.

    Raises:
        OSError, ValueError: the version isn't kept.
    """
    return dataset if version == dataset.version else dataset.checkout_version(version)


def kept_version(dataset: LanceDataset, version: int) -> LanceDataset | None:
    """Return a dataset opened at another of its versions; None if that isn't kept."""
    try:
        return at_version(dataset, version)
    except (OSError, ValueError):
        return None


def data_files(dataset: LanceDataset) -> list[DataFile]:
    """Return the data files of a version."""
    return [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]


def added_fragments(operation: Any) -> list[FragmentMetadata]:
    """Return the fragments that an operation adds."""
    kind = "new_fragments" if hasattr(operation, "new_fragments") else "fragments"
    return list(getattr(operation, kind, None) or ())


def added_files(operation: Any) -> list[str]:
    """Return the data files of the fragments that an operation adds."""
    return [file.path for fragment in added_fragments(operation) for file in fragment.files]


def rewritten_files(transaction: Transaction) -> Iterator[str]:
    """Yield the data files of the fragments whose rows a compaction has moved, if that says them."""
    for group in getattr(transaction.operation, "groups", None) or ():
        for fragment in group.old_fragments:
            yield from (file.path for file in fragment.files)


def deletions_of(fragment: FragmentMetadata) -> str | None:
    """Return what identifies the deletions of a fragment: two of equal number aren't the same."""
    deletions = fragment.deletion_file
    return None if deletions is None else str(deletions.json())


def is_maintenance(transaction: Transaction) -> bool:
    """Return whether a transaction can't have changed rows or columns."""
    return type(transaction.operation).__name__ in _MAINTENANCE


def read_transaction(dataset: LanceDataset, version: int) -> Transaction | None:
    """Return the transaction that made a version; None if the version isn't kept."""
    return next(iter(transactions(dataset, version - 1, version)))[1]


def restored_version(transaction: Transaction) -> int | None:
    """Return the version that a transaction restored; None if it is no Restore."""
    from lance import LanceOperation

    operation = transaction.operation
    return int(operation.version) if isinstance(operation, LanceOperation.Restore) else None


def was_restored(dataset: LanceDataset, after: int, newest: int) -> bool:
    """Return whether a version above `after`, up to `newest`, is a restore of an older one.

    Args:
        dataset: the dataset, opened at its latest version.
        after: the version to stop at.
        newest: the version to begin with.
    """
    return any(
        transaction is not None and restored_version(transaction) is not None
        for _, transaction in transactions(dataset, after, newest)
    )


def transactions(
    dataset: LanceDataset, after: int, newest: int | None = None
) -> Iterator[tuple[int, Transaction | None]]:
    """Yield the transactions of all versions above `after`, newest first; None for a version that isn't kept.

    Args:
        dataset: the dataset, opened at its latest version.
        after: the version to stop at.
        newest: the version to begin with; None is the latest one.
    """
    versions = range(dataset.version if newest is None else newest, after, -1)
    history = _History(dataset)
    start, size = 0, 1
    with ThreadPoolExecutor(_READ_AHEAD, thread_name_prefix="lance-history") as pool:
        while start < len(versions):
            block = versions[start : start + size]
            read = map(history.read, block) if size == 1 else pool.map(history.read, block)
            yield from zip(block, read, strict=True)
            if start <= _FEW < start + size:
                history.list_kept()
            # In growing blocks, since callers mostly need the newest few.
            start, size = start + size, min(2 * size, _READ_AHEAD)


def transactions_of(opened: LanceDataset, after: int) -> Iterator[tuple[int, Transaction | None]]:
    """Yield the transactions above `after` that led to an opened version, which may be a staged one."""
    newest = opened.version
    if is_detached(newest):
        staged = opened.read_transaction(newest)
        if staged is None:
            raise ValueError(f"version {newest} has no transaction")
        yield newest, staged
        newest = staged.read_version
    yield from transactions(opened, after, newest)


class _History:
    """Reads transactions. Which versions are kept is listed only where it saves requests."""

    def __init__(self, dataset: LanceDataset) -> None:
        self._dataset = dataset
        self._kept: frozenset[int] | None = None

    def list_kept(self) -> None:
        """List the versions that are kept; others aren't tried from then on."""
        self._kept = self._listed()

    def read(self, version: int) -> Transaction | None:
        if self._kept is not None and version not in self._kept:
            return None
        try:
            return self._at(version).read_transaction(version)
        except (OSError, ValueError):
            self._kept = self._listed()
            if version in self._kept:
                raise
            return None  # a clean-up removed it, perhaps while we were reading
        except TypeError as error:
            if _UNREADABLE not in str(error):
                raise
            return self._compaction_at(version)

    def _at(self, version: int) -> LanceDataset:
        # The newest one is read alone. Otherwise a Lance dataset can't be read by two threads at once.
        return at_version(self._dataset, version)

    def _compaction_at(self, version: int) -> Transaction:
        # It lists the indices it rewrote, which pylance 14 fails to read; it never has an idempotency key.
        # Its UUID is unknown, so the files that it has written identify it.
        from lance import LanceOperation, Transaction

        files = sorted(file.path for file in data_files(self._at(version)))
        names = hashlib.sha256("\n".join(files).encode()).hexdigest()
        return Transaction(version - 1, LanceOperation.Rewrite([], []), f"compaction-{names}")

    def _listed(self) -> frozenset[int]:
        return frozenset(reference["version"] for reference in self._dataset.version_refs())
