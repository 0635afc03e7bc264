"""Implementation-managed tables: the metastore's ``version`` is the table's version.

1. The manifest that Lance staged for version N is recorded.
2. ``version`` moves from N-1 to N by compare-and-set on the server, together with the name of what was
   staged. **That is the commit**: before it nothing happened, after it version N is the recorded
   manifest, whoever dies.
3. The recorded manifest gets its final name by put-if-absent, so that readers by path see it too.

Whoever reads or writes next finishes what was interrupted; docs/managed-tables.md draws every point
at which that can be.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    LanceNamespaceError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.commits import Commit, Publication
from airflow_provider_lancens.namespace.manifests import Manifest, Manifests
from airflow_provider_lancens.namespace.metastore import Change, Expectation, Table

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ManagedVersions:
    """The versions of a managed table, as its entry tells them."""

    entry: Table
    manifests: Manifests

    @property
    def version(self) -> int:
        """The newest; 0 while the table is declared and empty."""
        return marks.managed_version(self.entry)

    def newest(self) -> Manifest | None:
        """The newest version's manifest, None for 0; a commit that stopped halfway is finished on the way.

        Raises:
            InvalidTableStateError: (19) it is gone, or the table is at 0 and a writer by path wrote versions.
        """
        if self.version:
            return self.committed()
        if beyond := self.manifests.newest():
            # Lance takes "no version" for leave to look by itself, and would show what nobody committed.
            raise self._bypassed(beyond)
        return None

    def at(self, version: int) -> Manifest:
        """One version's manifest.

        Raises:
            TableVersionNotFoundError: (11) there is none; what a writer by path made is none either.
        """
        if version == self.version and version:
            return self.committed()
        found = self.manifests.find(version) if 0 < version < self.version else None
        if found is None:
            raise TableVersionNotFoundError(f"table {self.entry.id} has no version {version}")
        return found

    def all(self) -> dict[int, Manifest]:
        """Every version; what a writer by path made beyond the metastore's version isn't shown."""
        newest = self.newest()
        if newest is None:
            return {}
        older = {v: manifest for v, manifest in self.manifests.all().items() if v < self.version}
        return {**older, self.version: newest}

    def committed(self) -> Manifest:
        """The manifest of the newest version, which is above 0; 19 where it is gone."""
        commit = Commit.of(self.entry)
        # In this order: a manifest that isn't recorded any more has its final name already.
        recorded = self.manifests.find_at(commit.recorded_path, commit.version) if commit else None
        if commit is None or recorded is None:
            return self._final()
        try:
            return Publication(self.manifests, commit).finish() or self._final()
        except LanceNamespaceError as error:
            # A reader needn't be able to write, nor to heal: the recorded manifest is the version.
            log.info("Table %s: its recorded manifest is read: %s", self.entry.id, error)
            return recorded

    def next(self, publication: Publication) -> Change:
        """Record a staged manifest, and answer the change of the entry that commits it.

        Raises:
            ConcurrentModificationError: (14) that version exists, or isn't the next one.
            InvalidTableStateError: (19) metastore and storage disagree. Lance may have built that manifest on
                what lies on the storage, so it would lose what is committed.
        """
        commit = publication.commit
        if commit.version != self.version + 1:
            raise ConcurrentModificationError(
                f"table {self.entry.id}: version {commit.version} can't follow version {self.version}, "
                "another writer was first"
            )
        self.finish()
        if self.manifests.look(commit.final_path):
            raise self._bypassed(commit.version)
        publication.record()
        return self.move({marks.VERSION: str(commit.version), marks.COMMIT: commit.as_parameter()})

    def move(self, parameters: dict[str, str]) -> Change:
        """The change of the entry to another version, on condition that it still has this one; 19."""
        if marks.VERSION not in self.entry.parameters:
            raise InvalidTableStateError(
                f"table {self.entry.id}: its entry lacks the parameter {marks.VERSION!r}, so no server can "
                "compare it; adopt the storage's newest version"
            )
        expected = Expectation(marks.VERSION, self.entry.parameters[marks.VERSION])
        return Change(parameters, remove=(marks.COMMIT,), expect=expected)

    def finish(self) -> None:
        """Finish the newest commit where that is left to do; 19, and the storage's 15 to 17."""
        commit = Commit.of(self.entry)
        if commit and self.manifests.look(commit.recorded_path):
            Publication(self.manifests, commit).finish()

    def is_diverged(self) -> bool:
        """Whether a writer by path holds the final name of the version that was committed here."""
        commit = Commit.of(self.entry)
        recorded = self.manifests.read(commit.recorded_path) if commit else None
        if commit is None or recorded is None:
            return False
        return self.manifests.read(commit.final_path) not in (None, recorded)

    def _final(self) -> Manifest:
        found = self.manifests.find(self.version)
        if found is None:
            raise InvalidTableStateError(
                f"table {self.entry.id}: the metastore is at version {self.version}, but its manifest isn't "
                f"at {self.manifests.location}: removed, or the storage was restored; compare and repair"
            )
        return found

    def _bypassed(self, version: int) -> InvalidTableStateError:
        return InvalidTableStateError(
            f"table {self.entry.id}: version {version} lies on the storage, but the metastore is at "
            f"{self.version}: a writer went by path; compare, then adopt its versions or remove them"
        )
