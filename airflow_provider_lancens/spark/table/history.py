"""The commit history of a dataset: its transactions, newest first.

Which version an idempotency key committed isn't searched here, but in the key's records, see `spark.keys`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_lancens.namespace.storage.object_store import is_detached

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, Transaction
    from lance.fragment import DataFile, FragmentMetadata, LanceFragment

COMPUTED_FILES = "computed-"
"""How the names of files begin that only add computed columns to a fragment, see `spark.compute`."""
_ADDRESS = "_rowaddr"
_FRAGMENT_BITS = 32
"""By how many bits an address is shifted to give the id of its fragment."""
_READ_AHEAD = 16
_FEW = 64
"""Number of versions that are tried one by one before the kept ones are listed."""
_MAINTENANCE = frozenset({"Rewrite", "CreateIndex", "UpdateConfig", "BaseOperation", "UpdateMemWalState"})
_UNREADABLE = "RewrittenIndex"


def data_changed(dataset: LanceDataset, since: int) -> bool:
    """Return whether a version above `since` changed rows or columns, or might have; maintenance doesn't."""
    return any(
        transaction is None or not is_maintenance(transaction)
        for _, transaction in transactions(dataset, since)
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


class RowDifference(NamedTuple):
    """Rows of two versions that may differ, by their addresses."""

    before: pa.Table
    after: pa.Table
    same_files: Collection[int]
    """The fragments whose data files are the same in both versions: only what is deleted of them differs."""

    @property
    def written(self) -> pa.Table:
        """Rows that others wrote, brought back by a restore, or changed in one of their columns."""
        return self._only(self.after, self.before)

    @property
    def deleted(self) -> pa.Table:
        """The rows that only the older version has."""
        return self._only(self.before, self.after)

    def _only(self, rows: pa.Table, others: pa.Table) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        fragments = pc.shift_right(others[_ADDRESS], pa.scalar(_FRAGMENT_BITS, pa.uint64()))
        same = pc.is_in(fragments, value_set=pa.array(self.same_files, pa.uint64()))
        known = pc.is_in(rows[_ADDRESS], value_set=others[_ADDRESS].filter(same))
        return rows.filter(pc.invert(known)).drop_columns([_ADDRESS])


def changed_rows(
    latest: LanceDataset, base: int, columns: Sequence[str], condition: str | None = None
) -> RowDifference | None:
    """Return columns of the rows whose fragments have changed since an older version; None if it isn't kept.

    Args:
        latest: the newer version.
        base: the older one.
        columns: the columns, which both have.
        condition: the condition on the rows, in Lance's SQL dialect; None returns all.
    """
    before = kept_version(latest, base)
    if before is None:
        return None
    sides = [{_identity(one): one for one in version.get_fragments()} for version in (before, latest)]
    old, new = (
        [fragment for known, fragment in side.items() if known not in other]
        for side, other in (sides, sides[::-1])
    )
    same_files = sorted({_files(one) for one in old} & {_files(one) for one in new})
    read = [
        version.scanner(columns=list(columns), fragments=fragments, filter=condition, with_row_address=True)
        for version, fragments in ((before, old), (latest, new))
        if fragments
    ]
    tables = [scanner.to_table().select([*columns, _ADDRESS]) for scanner in read]
    if not tables:
        none = _no_rows(latest, columns)
        return RowDifference(none, none, same_files=())
    if len(tables) == 1:
        tables.insert(0 if new else 1, tables[0].slice(0, 0))
    rows_before, rows_after = tables
    return RowDifference(rows_before, rows_after, same_files=[fragment for fragment, _ in same_files])


def _identity(fragment: LanceFragment) -> tuple[object, ...]:
    return *_files(fragment), deletions_of(fragment.metadata)


def _files(fragment: LanceFragment) -> tuple[int, tuple[object, ...]]:
    """Return a fragment's id, and its data files with the ids of the columns for which each is used."""
    files = ((file.path, tuple(file.fields)) for file in fragment.metadata.files)
    return fragment.fragment_id, tuple(sorted(files))


def deletions_of(fragment: FragmentMetadata) -> str | None:
    """Return what identifies the deletions of a fragment: two of equal number aren't the same."""
    deletions = fragment.deletion_file
    return None if deletions is None else str(deletions.json())


def _no_rows(dataset: LanceDataset, columns: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    fields = [dataset.schema.field(name) for name in columns]
    return pa.schema([*fields, pa.field(_ADDRESS, pa.uint64())]).empty_table()


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


def transactions(
    dataset: LanceDataset, after: int, newest: int | None = None
) -> Iterator[tuple[int, Transaction | None]]:
    """Yield the transactions of all versions above `after`, newest first; None for one that isn't kept.

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
