"""Proxies between Lance's core and the version authority: forward, and commit only while a lease is held."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lance_namespace import LanceNamespace

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.write_leases import check_open
from airflow_provider_lancens.redaction import redact
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.table.storage_versions import StorageVersions

if TYPE_CHECKING:
    from lance_namespace_urllib3_client import models


@dataclass(eq=False)
class NamespaceProxy(LanceNamespace):
    """Forwards the requests that Lance's core makes to read and commit through a namespace."""

    wrapped: LanceNamespace
    """The table's version authority."""

    def namespace_id(self) -> str:
        """Return the id of the wrapped namespace."""
        return self.wrapped.namespace_id()

    def describe_table(self, request: Any) -> models.DescribeTableResponse:
        """Forward the request, by which Lance refreshes credentials."""
        return self.wrapped.describe_table(request)

    def list_table_versions(self, request: Any) -> models.ListTableVersionsResponse:
        """Forward the request, by which Lance gets the newest version."""
        return self.wrapped.list_table_versions(request)

    def describe_table_version(self, request: Any) -> models.DescribeTableVersionResponse:
        """Forward the request, by which Lance reads commits in between, or the one that won a conflict."""
        return self.wrapped.describe_table_version(request)

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Forward the request, by which Lance commits."""
        return self.wrapped.create_table_version(request)


@dataclass(eq=False)
class LeasedCommits(NamespaceProxy):
    """Creates a version only while the writer's lease is held, and keeps the error of the last commit.

    Lance requests to create a version once the version number is determined. The lease is checked after that
    and before the version is created, so a driver that is suspended in between can create only this version,
    which exists by the time a clean-up reads the referenced files, see `lease_revocation`. Lance may rebase a
    compaction or an index on concurrent commits, and then repeats the request.

    Lance's core drops the type of an exception that a namespace raises, so the driver gets it from here.
    """

    lease: WriteLease | None
    """The writer's lease; None if it writes no files that a clean-up could remove."""
    _error: spec_errors.LanceNamespaceError | None = field(default=None, init=False, repr=False)

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Check the lease, then forward the request.

        Raises:
            ConcurrentModificationError: (14) the lease was revoked, or another writer was first.
        """
        try:
            made = self._create(request)
        except spec_errors.LanceNamespaceError as error:
            self._error = error
            no_answer = isinstance(error, spec_errors.ServiceUnavailableError)
            if self.lease is not None and self.by_storage and no_answer:
                self.lease.unanswered.append(str(request["version"]))
            raise
        self._error = None
        return made

    def check_allowed(self) -> None:
        """Check that the version may be created whose number Lance has just determined.

        Raises:
            ConcurrentModificationError: (14) the lease was revoked.
            StaleTableError: (14) the metastore is to decide, and not the storage as when this was prepared.
        """
        if self.lease is not None:
            self.lease.check(by_storage=self.by_storage)
        elif isinstance(self.wrapped, StorageVersions):
            check_open(self.wrapped.dataset.manifests)

    @property
    def by_storage(self) -> bool:
        """Whether the storage is the version authority."""
        return isinstance(self.wrapped, StorageVersions)

    def _create(self, request: Any) -> models.CreateTableVersionResponse:
        self.check_allowed()
        return self.wrapped.create_table_version(request)

    @property
    def has_failed(self) -> bool:
        """Whether the last commit was refused, or may not have been made."""
        return self._error is not None

    def error_of(self, error: Exception) -> spec_errors.LanceNamespaceError:
        """Return the error to raise when Lance's commit failed with this one."""
        return self._error or spec_errors.ServiceUnavailableError(
            f"storage or metastore failed: {redact(str(error))}"
        )
