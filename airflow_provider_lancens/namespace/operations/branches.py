"""Versions of a table's branches: the storage is always their version authority.

A branch is a dataset in a folder of its own, ``tree/<branch>``. The catalog table has one version, the main
branch's, so a version of a branch is committed by put-if-absent of its manifest's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.locations import join
from airflow_provider_lancens.namespace.managed.publication import CommitRecord, publish
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from airflow_provider_lancens.namespace.operations.table_operations import TableOperations
from airflow_provider_lancens.namespace.storage.conditional_writes import require_conditional_writes
from airflow_provider_lancens.namespace.storage.manifests import Manifest, Manifests
from airflow_provider_lancens.namespace.storage.object_store import BRANCHES
from airflow_provider_lancens.namespace.storage.table_links import check_links

MAIN = "main"
"""Name of the main branch; a request may also omit it."""
_SEGMENT = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class BranchOperations:
    """Operations on the versions of branches; pylance creates and deletes the branches themselves."""

    tables: TableOperations

    def create(self, table: TableId, branch: str, commit: CommitRecord) -> Manifest:
        """Commit a staged manifest as a version of a branch.

        Raises:
            ConcurrentModificationError: (14) that version exists.
            InvalidInputError: (13) the storage is the table's version authority, so no commit needs a
                namespace.
            TableVersionNotFoundError: (11) the staged manifest is gone.
            UnsupportedOperationError: (0) the storage overwrites files that exist.
        """
        catalog_table = self.tables.get(table)
        table_properties.check_managed(catalog_table)
        manifests = self._manifests(catalog_table, branch)
        require_conditional_writes(manifests)  # the storage decides between two commits to a branch
        return publish(manifests, commit)

    def describe(self, table: TableId, branch: str, version: int) -> Manifest:
        """Return one version of a branch.

        Raises:
            TableVersionNotFoundError: (11) there is no such version.
        """
        manifest = self._manifests(self.tables.get(table), branch).find(version)
        if manifest is None:
            raise spec_errors.TableVersionNotFoundError(
                f"table {table}, branch {branch!r} has no version {version}"
            )
        return manifest

    def newest(self, table: TableId, branch: str) -> Manifest | None:
        """Return the newest version of a branch; None if there is no such branch."""
        manifests = self._manifests(self.tables.get(table), branch)
        version = manifests.newest()
        return manifests.find(version) if version else None

    def all(self, table: TableId, branch: str) -> Mapping[int, Manifest]:
        """Return every version of a branch; empty if there is no such branch."""
        return self._manifests(self.tables.get(table), branch).all()

    def _manifests(self, catalog_table: CatalogTable, branch: str) -> Manifests:
        root = self.tables.location_of(catalog_table)
        check_links(root, branch)
        location = join(root, BRANCHES, *branch.split("/"))
        return Manifests(location, self.tables.config.storage_options)


def branch_name(requested: str | None) -> str | None:
    """Return the branch that a request names; None for the main one.

    Raises:
        InvalidInputError: (13) the name is invalid in Lance.
    """
    if requested in (None, "", MAIN):
        return None
    segments = str(requested).split("/")
    if not all(_SEGMENT.fullmatch(segment) and segment.strip(".") for segment in segments):
        raise spec_errors.InvalidInputError(
            f"branch: expected letters, digits, '.', '-', '_', and '/' between them, got {requested!r}"
        )
    return requested
