"""Replace the rows of an earlier commit under the same key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.commit.table_changes import CommitStep, Overwrite, TableChange
from airflow_provider_lancens.spark.keys import KeyedCommit
from airflow_provider_lancens.spark.table.history import data_changed, read_transaction

if TYPE_CHECKING:
    from lance import LanceDataset

_ADVICE = "delete those rows and write the new ones under another key, or overwrite the table"


@dataclass(frozen=True, slots=True)
class Replacement(TableChange):
    """Remove the fragments of an earlier append, and add others, in one commit."""

    replaced: frozenset[str]
    """The data files of the removed fragments."""

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: other rows that were appended or removed meanwhile aren't affected."""
        from lance import LanceOperation

        removed = None if latest is None else _fragments_of(latest, self.replaced)
        if latest is None or removed is None:
            raise self._conflict("the rows to replace were changed")
        self.check_same_columns(latest)
        operation = LanceOperation.Update(removed_fragment_ids=removed, new_fragments=list(self.fragments))
        return CommitStep(operation, latest.version)


def replacing(
    mode: str, dataset: LanceDataset, commit: KeyedCommit, table: str
) -> Callable[..., TableChange]:
    """Return the kind of change that replaces what a commit in this mode wrote.

    Raises:
        InvalidInputError: (13) the commit cannot be undone without affecting changes of other writers.
    """
    if mode == "append":
        return partial(Replacement, replaced=_appended_files(dataset, commit, table))
    _check_only_maintained(dataset, commit, table)
    return Overwrite


def _appended_files(dataset: LanceDataset, commit: KeyedCommit, table: str) -> frozenset[str]:
    """Return the data files that a commit appended, if all are unchanged.

    Raises:
        InvalidInputError: (13) the commit cannot be read any more, or its files were changed since.
    """
    transaction = read_transaction(dataset, commit.version)
    if transaction is None:
        raise InvalidInputError(
            f"table {table}: on_existing_key: cannot identify the rows of version "
            f"{commit.version}, which was cleaned up; {_ADVICE}"
        )
    files = frozenset(file.path for fragment in _added(transaction.operation) for file in fragment.files)
    if _fragments_of(dataset, files) is None:
        raise InvalidInputError(
            f"table {table}: on_existing_key: cannot undo version {commit.version}: its rows "
            f"were compacted, deleted or changed since; {_ADVICE}"
        )
    return files


def _check_only_maintained(dataset: LanceDataset, commit: KeyedCommit, table: str) -> None:
    """Check that no rows were changed since a commit that overwrote the table.

    Raises:
        InvalidInputError: (13) others have changed rows since, or that cannot be determined any more.
    """
    if data_changed(dataset, since=commit.version):
        raise InvalidInputError(
            f"table {table}: on_existing_key: cannot replace version {commit.version}, an "
            "overwrite: other writers have changed rows since, which would be lost; use "
            "on_existing_key='write_again' if that is intended"
        )


def _added(operation: Any) -> list[Any]:
    """Return the fragments that an append, the first write of a data set, or a replacement added."""
    kind = "new_fragments" if hasattr(operation, "new_fragments") else "fragments"
    return list(getattr(operation, kind))


def _fragments_of(dataset: LanceDataset, files: frozenset[str]) -> list[int] | None:
    """Return the ids of the fragments with these files; None if a file or a row of them was removed."""
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
