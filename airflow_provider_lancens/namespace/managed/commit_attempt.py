"""Commit of a staged manifest as the next version of a managed table (specification: CreateTableVersion)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.managed.managed_versions import ManagedVersions
from airflow_provider_lancens.namespace.managed.publication import CommitRecord, Publication
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Metastore, ParameterChange
from airflow_provider_lancens.namespace.storage.manifests import Manifest

log = logging.getLogger(__name__)


class _OutdatedTableError(Exception):
    """The catalog table was changed since it was read, and must be read again before anything is decided."""


@dataclass(frozen=True, slots=True)
class CommitAttempt:
    """One attempt to commit."""

    metastore: Metastore
    table: TableId
    commit: CommitRecord
    versions_of: Callable[[CatalogTable], ManagedVersions]

    def make(self) -> Manifest:
        """Commit, then publish the manifest as far as the storage allows.

        Raises:
            ConcurrentModificationError: (14) that version exists, or isn't the next one.
            InvalidInputError: (13) the storage is the version authority, or no such manifest is staged.
            InvalidTableStateError: (19) metastore and storage disagree; nothing was committed.
            UnsupportedOperationError: (0) the metastore can't compare-and-set.
            ServiceUnavailableError: (17) metastore or storage didn't answer; it may be committed.
        """
        publication = Publication(self.commit)
        try:
            return self._publish(publication, self.versions_of(self._commit_version(publication)))
        except spec_errors.ConcurrentModificationError:
            raise  # Lance itself retries
        except spec_errors.LanceNamespaceError as error:
            # Lance's core drops the message of any error, and raises "Commit result for version N is
            # unknown": the log is the only place where the user finds the cause.
            log.error("Table %s: the commit of version %d failed: %s", self.table, self.commit.version, error)
            raise

    def _commit_version(self, publication: Publication) -> CatalogTable:
        self.metastore.require_compare_and_set(self.table.namespace)  # before recording anything
        decide = partial(self._decide, publication)
        while True:
            try:
                return self.metastore.update_table(self.table, decide).table
            except _OutdatedTableError:
                continue
            except (spec_errors.ConcurrentModificationError, spec_errors.InternalError) as error:
                return self._recover_commit(publication, error)

    def _decide(self, publication: Publication, catalog_table: CatalogTable) -> ParameterChange | None:
        """Record the manifest, and return the change that commits it; None if it is committed already.

        Raises:
            _OutdatedTableError: another writer has changed the catalog table since `catalog_table` was read.
            LanceNamespaceError: see `make`.
        """
        try:
            table_properties.check_managed(catalog_table)
            if CommitRecord.of(catalog_table) == self.commit:
                return None  # the request is repeated after a lost response
            return self.versions_of(catalog_table).next(publication)
        except spec_errors.InvalidTableStateError as error:
            # The version on the storage may have been committed since the catalog table was read.
            if self.metastore.get_table(self.table) == catalog_table:
                raise
            raise _OutdatedTableError from error

    def _recover_commit(
        self, publication: Publication, refusal: spec_errors.LanceNamespaceError
    ) -> CatalogTable:
        """Return the catalog table if the commit succeeded after all; otherwise raise `refusal`."""
        if publication.content is None:
            raise refusal  # nothing was sent
        catalog_table = self.metastore.get_table(self.table)
        manifests = self.versions_of(catalog_table).manifests
        # An earlier attempt may have succeeded with its response lost, while others committed. They build on
        # a version only once it has its final name, so the final manifest shows which writer made it.
        built_upon = table_properties.managed_version(
            catalog_table
        ) > self.commit.version and publication.was_finished(manifests)
        if built_upon or CommitRecord.of(catalog_table) == self.commit:
            return catalog_table
        if isinstance(refusal, spec_errors.ConcurrentModificationError):
            publication.withdraw(manifests)
        raise refusal

    def _publish(self, publication: Publication, versions: ManagedVersions) -> Manifest:
        try:
            return publication.finish(versions.manifests) or versions.committed()
        except Exception as error:  # noqa: BLE001 - the version is committed, so this must not fail
            log.warning(
                "Table %s: version %d is committed, but its manifest is still named %s; the next "
                "read or commit renames it: %s",
                self.table,
                self.commit.version,
                self.commit.recorded_path,
                error,
            )
        return versions.manifests.at(self.commit.recorded_path, self.commit.version)
