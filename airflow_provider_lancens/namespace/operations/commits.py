"""Making a staged manifest the next version of a managed table (specification: CreateTableVersion)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lance_namespace.errors import (
    ConcurrentModificationError,
    InternalError,
    InvalidTableStateError,
    LanceNamespaceError,
)

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.commits import Commit, Publication
from airflow_provider_lancens.namespace.managed import ManagedVersions
from airflow_provider_lancens.namespace.manifests import Manifest
from airflow_provider_lancens.namespace.metastore import Change, Metastore, Table
from airflow_provider_lancens.namespace.writes import Write, noted

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CommitAttempt:
    """One try to commit, and what is known of how it went."""

    metastore: Metastore
    table: TableId
    commit: Commit
    versions_of: Callable[[Table], ManagedVersions]
    write: Write | None = None
    """What the entry is to remember by the same change: one isn't there without the other."""
    _publication: Publication | None = field(default=None, init=False)

    def make(self) -> Manifest:
        """Commit, and then finish as far as the storage allows.

        Raises:
            ConcurrentModificationError: (14) that version exists, or isn't the next one.
            InvalidInputError: (13) the storage decides the table's version, or no such manifest is staged.
            InvalidTableStateError: (19) metastore and storage disagree; nothing was committed.
            UnsupportedOperationError: (0) the metastore can't compare-and-set.
            ServiceUnavailableError: (17) metastore or storage didn't answer; it may be committed.
        """
        self.metastore.require_compare_and_set(self.table.namespace)  # before anything is recorded
        try:
            entry = self.metastore.update_table(self.table, self._decide)
        except (ConcurrentModificationError, InternalError) as error:
            entry = self._entry_that_has_it(error)
        except InvalidTableStateError as error:
            raise self._explained(error) from error
        return self._finished(self.versions_of(entry))

    def _decide(self, entry: Table) -> Change | None:
        marks.check_managed(entry)
        if Commit.of(entry) == self.commit:
            return None  # the same request again: its answer was lost
        versions = self.versions_of(entry)
        publication = self._publication or Publication(versions.manifests, self.commit)
        change = versions.next(publication)
        self._publication = publication
        remembered = noted(entry, self.write) if self.write else {}
        return replace(change, set={**change.set, **remembered})

    def _entry_that_has_it(self, refusal: LanceNamespaceError) -> Table:
        """The entry where the commit stands all the same; else the refusal is raised."""
        publication = self._publication
        if publication is None:
            raise refusal  # before anything was sent
        entry = self.metastore.get_table(self.table)
        # An earlier try may have come through and its answer been lost, while others went on. They build
        # on a version only when it has its final name, so that tells whose it is.
        overtaken = marks.managed_version(entry) > self.commit.version and publication.was_finished()
        if overtaken or Commit.of(entry) == self.commit:
            return entry
        if isinstance(refusal, ConcurrentModificationError):
            publication.withdraw()
        raise refusal

    def _explained(self, error: InvalidTableStateError) -> LanceNamespaceError:
        """The error by its right name: a version may lie there that was committed since we read the entry."""
        entry = self.metastore.get_table(self.table)
        if marks.managed_version(entry) >= self.commit.version:
            return ConcurrentModificationError(
                f"table {self.table}: another writer committed version {self.commit.version} first"
            )
        # Said here too: Lance's core drops an error's words, and tells only that the result is unknown.
        log.warning("Nothing was committed: %s", error)
        return error

    def _finished(self, versions: ManagedVersions) -> Manifest:
        publication = self._publication or Publication(versions.manifests, self.commit)
        try:
            return publication.finish() or versions.committed()
        except Exception as error:  # noqa: BLE001 - it is committed: whatever went wrong now, the answer is yes
            log.warning(
                "Table %s: version %d is committed. Its manifest is %s for now; whoever reads or writes next "
                "gives it its final name: %s",
                self.table,
                self.commit.version,
                self.commit.recorded_path,
                error,
            )
        return versions.manifests.at(self.commit.recorded_path, self.commit.version)
