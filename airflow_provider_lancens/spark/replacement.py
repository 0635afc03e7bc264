"""Putting other rows in the place of those that an earlier commit under the same key brought."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.changes import Change, Overwrite, Step
from airflow_provider_lancens.spark.history import Commit, data_changed, read_transaction

if TYPE_CHECKING:
    from lance import LanceDataset

_ADVICE = "delete those rows and write the new ones under another key, or overwrite the table"


@dataclass(frozen=True, slots=True)
class Replacement(Change):
    """Remove the fragments that an earlier append brought, and add others, in one commit."""

    replaced: frozenset[str]
    """The data files of the former."""

    def onto(self, latest: LanceDataset | None) -> Step:
        """See `Change.onto`: whatever else others appended or removed meanwhile stays so."""
        from lance import LanceOperation

        removed = None if latest is None else _fragments_of(latest, self.replaced)
        if latest is None or removed is None:
            raise self._overtaken("the rows to replace were changed")
        self.check_same_columns(latest)
        operation = LanceOperation.Update(removed_fragment_ids=removed, new_fragments=list(self.fragments))
        return Step(operation, latest.version)


def replacing(mode: str, dataset: LanceDataset, commit: Commit, table: str) -> Callable[..., Change]:
    """The kind of change that replaces what a commit in this mode brought.

    Raises:
        InvalidInputError: (13) it can't be taken back without touching what others did.
    """
    if mode == "append":
        return partial(Replacement, replaced=_appended_files(dataset, commit, table))
    _check_only_maintained(dataset, commit, table)
    return Overwrite


def _appended_files(dataset: LanceDataset, commit: Commit, table: str) -> frozenset[str]:
    """The data files that a commit appended, each still as it was written.

    Raises:
        InvalidInputError: (13) they can't be told any more, or are not in the table as they were.
    """
    transaction = read_transaction(dataset, commit.version)
    if transaction is None:
        raise InvalidInputError(
            f"table {table}: on_changed='replace' can't tell the rows of version {commit.version}, which was "
            f"cleaned up; {_ADVICE}"
        )
    files = frozenset(file.path for fragment in _added(transaction.operation) for file in fragment.files)
    if _fragments_of(dataset, files) is None:
        raise InvalidInputError(
            f"table {table}: on_changed='replace' can't take back version {commit.version}: its rows were "
            f"compacted, deleted or changed since; {_ADVICE}"
        )
    return files


def _check_only_maintained(dataset: LanceDataset, commit: Commit, table: str) -> None:
    """Return where the table still holds what a commit made of all of it.

    Raises:
        InvalidInputError: (13) others have changed rows since, or nobody can tell any more.
    """
    if data_changed(dataset, since=commit.version):
        raise InvalidInputError(
            f"table {table}: on_changed='replace' can't overwrite version {commit.version} again: others "
            "have changed rows since, and would lose them; overwrite under another key if that is meant"
        )


def _added(operation: Any) -> list[Any]:
    """The fragments that an append, the first write of a data set, or a replacement brought."""
    kind = "new_fragments" if hasattr(operation, "new_fragments") else "fragments"
    return list(getattr(operation, kind))


def _fragments_of(dataset: LanceDataset, files: frozenset[str]) -> list[int] | None:
    """The ids of the fragments that consist of these files and all their rows; None if any isn't so."""
    found: list[int] = []
    missing = set(files)
    for fragment in dataset.get_fragments():
        paths = {file.path for file in fragment.metadata.files}
        if not paths & files:
            continue
        if not paths <= files or fragment.metadata.deletion_file is not None:
            return None
        found.append(fragment.fragment_id)
        missing -= paths
    return None if missing else found
