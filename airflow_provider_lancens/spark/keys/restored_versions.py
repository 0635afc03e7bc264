"""Which commits a Restore undid, from a checkpoint beside the data and the transactions since.

A Restore makes an older version the newest again, so the commits in between are in the history, but not in
the table. The checkpoint has the Restores up to a version, so that no table's history is read twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens.namespace.storage.json_records import UNREADABLE, whole_number
from airflow_provider_lancens.namespace.storage.table_files import StoredFile, TableFiles
from airflow_provider_lancens.spark.table.history import restored_version, transactions

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

RESTORES_RECORDED = "lancens.restores_recorded"
"""Property of a commit's transaction: the version of the checkpoint that it relies on.

That checkpoint, or a later one, has the Restores of all versions below the commit; 0 if there are none."""
MAX_BEHIND = 32
"""Versions after which a commit moves the checkpoint."""
_MAX_ADVANCE = 64
"""Versions that a commit reads at most to move it: one writer must not bear the cost of all others."""
_MAX_READ = 8
"""Versions that each commit reads at most: those of maintenance since the last commit of this package."""
_NONE = b"[]"
"""The content of a checkpoint without Restores."""
_NAME = re.compile(r"restores-(\d{1,20})\.json")


@dataclass(frozen=True, slots=True)
class RestoredVersions:
    """The Restores of a dataset, known up to a version."""

    checked: int = 0
    """The version up to which they are known."""
    restores: tuple[tuple[int, int], ...] = ()
    """Each with the version that it made and the one that it restored."""

    def keep(self, version: int, newest: int) -> bool:
        """Return whether the newest version descends from a version, so that its rows are in the table."""
        top = newest
        for made, restored in sorted(self.restores, reverse=True):
            if made > top:
                continue  # undone itself
            if version >= made:
                break
            top = restored
        return version <= top

    def extended(self, dataset: LanceDataset, up_to: int | None = None) -> Self:
        """Return the Restores up to a later version too, by reading the transactions in between.

        A version that was cleaned up before anyone read it counts as none.

        Args:
            dataset: the dataset, opened at its latest version.
            up_to: the version to stop at; None is the latest.
        """
        newest = dataset.version if up_to is None else up_to
        return self.including(_Walk.down(dataset, self, self.checked, newest).restores, newest)

    def including(self, restores: Collection[tuple[int, int]], up_to: int) -> Self:
        """Return these Restores and those of later versions up to a given one."""
        return type(self)(max(up_to, self.checked), tuple(sorted({*self.restores, *restores})))


def checkpoint_of(transaction: Transaction) -> int | None:
    """Return the version of the checkpoint that a commit relies on; None if it isn't known."""
    text = (transaction.transaction_properties or {}).get(RESTORES_RECORDED, "")
    return whole_number(text)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The Restores that are found on the way down from a version."""

    restores: frozenset[tuple[int, int]]
    read: int
    """The number of transactions that were read."""
    is_complete: bool
    """Whether all Restores below are in the checkpoint, or there is no version below."""

    @classmethod
    def down(
        cls, dataset: LanceDataset, recorded: RestoredVersions, after: int, newest: int | None = None
    ) -> Self:
        """Read transactions down to a version, or to a commit below which all Restores are recorded.

        Args:
            dataset: the dataset.
            recorded: the checkpoint as read. A commit that relies on a later one is not trusted: another
                driver may have replaced the checkpoint meanwhile, or its version was abandoned.
            after: the version to stop at.
            newest: the version to begin with; None is the latest one.
        """
        restores: set[tuple[int, int]] = set()
        read = 0
        for version, transaction in transactions(dataset, after, newest):
            read += 1
            if transaction is None:
                continue
            if (restored := restored_version(transaction)) is not None:
                restores.add((version, restored))
            relied_upon = checkpoint_of(transaction)
            if relied_upon is not None and relied_upon <= recorded.checked:
                return cls(frozenset(restores), read, is_complete=True)
        return cls(frozenset(restores), read, is_complete=after <= 0)


@dataclass(frozen=True, slots=True)
class RestoreCheckpoint:
    """The checkpoint's files in a folder, of which the one with the highest version counts."""

    files: TableFiles
    folder: str
    sizes: Mapping[int, int]
    """The bytes of each file in the folder, as listed, by its version."""

    @classmethod
    def among(cls, files: TableFiles, folder: str, listed: Sequence[StoredFile]) -> Self:
        """Return the checkpoint among the listed files of a folder."""
        names = ((_NAME.fullmatch(file.path.rpartition("/")[2]), file.size) for file in listed)
        return cls(files, folder, {int(name[1]): size for name, size in names if name})

    def covering(self, dataset: LanceDataset) -> int | None:
        """Return the version of a checkpoint with the Restores up to a version; None if many would be read.

        Args:
            dataset: the dataset, opened at that version.
        """
        newest = dataset.version
        recorded = self.read(newest)
        bottom = max(newest - _MAX_READ, recorded.checked)
        walk = _Walk.down(dataset, recorded, bottom)
        if not walk.is_complete and bottom != recorded.checked:
            return None
        if not walk.restores:
            return recorded.checked
        self.write(recorded.including(walk.restores, newest))
        return newest

    def known(self, dataset: LanceDataset, since: int) -> RestoredVersions:
        """Return the Restores that matter to a version, and record them if many transactions were read."""
        newest = dataset.version
        recorded = self.read(newest)
        few = newest - since <= MAX_BEHIND < newest - recorded.checked
        walk = _Walk.down(dataset, recorded, max(since, recorded.checked) if few else recorded.checked)
        known = recorded.including(walk.restores, newest)
        if walk.read >= MAX_BEHIND and not few:
            self.write(known)
        return known

    def advance(self, dataset: LanceDataset, *, completely: bool = False) -> None:
        """Read the transactions since if they are many, and record their Restores.

        Args:
            dataset: the dataset, opened at its latest version.
            completely: whether to read all of them, however few or many.
        """
        newest = dataset.version
        if self._behind(newest) < (1 if completely else MAX_BEHIND):
            return
        known = self.read(newest)
        up_to = newest if completely else min(newest, known.checked + _MAX_ADVANCE)
        self.write(known.extended(dataset, up_to))

    def read(self, newest: int) -> RestoredVersions:
        """Return what is recorded; nothing if it is of versions above the newest, which were abandoned."""
        best = max(self.sizes, default=0)
        if 0 < best <= newest and self.sizes[best] == len(_NONE):
            return RestoredVersions(best)
        content = self.files.read(self._path(best)) if 0 < best <= newest else None
        if content is None:
            return RestoredVersions()
        try:
            return RestoredVersions(best, tuple((int(a), int(b)) for a, b in json.loads(content)))
        except UNREADABLE:
            return RestoredVersions()

    def write(self, known: RestoredVersions) -> None:
        """Replace what is recorded."""
        self.files.put(self._path(known.checked), json.dumps(known.restores).encode())
        if outdated := [self._path(version) for version in self.sizes if version != known.checked]:
            self.files.remove_outdated(*outdated)

    def _behind(self, newest: int) -> int:
        best = max(self.sizes, default=0)
        return newest - best if best <= newest else newest

    def _path(self, version: int) -> str:
        return f"{self.folder}/restores-{version}.json"
