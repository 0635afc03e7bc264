"""The fence around one commit: it creates the given version, or none, and only while its lease is held.

By itself Lance rebases a stale commit on the commits in between, even with ``max_retries=0``, which is no
compare-and-set. Through the fence Lance reads the table as the driver did, and creates the next version or
nothing. Loaded when a commit is made: executors don't need clients of `lance_namespace`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lance_namespace_urllib3_client import models

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.error_types import StaleTableError
from airflow_provider_lancens.namespace.lance_errors import panics_as_errors
from airflow_provider_lancens.namespace.requests import as_model
from airflow_provider_lancens.namespace.storage.manifests import Manifests, staged_name
from airflow_provider_lancens.namespace.storage.object_store import VERSIONS, manifest_names
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.namespace.storage.write_leases import check_open
from airflow_provider_lancens.redaction import redact
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.table.namespace_proxy import NamespaceProxy
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.table.storage_versions import StorageVersions

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction


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
    check_base: Callable[[int], object] | None = field(default=None, init=False, repr=False)
    """Called with the version that the commit follows, before that is made; raises an error to refuse it."""
    removed_at: Manifests | None = field(default=None, init=False, repr=False)
    """Where Lance looks for the manifests of removed versions, and finds them missing; None refuses these."""
    made: set[int] = field(default_factory=set, init=False, repr=False)
    """The versions that were created."""
    _error: spec_errors.LanceNamespaceError | None = field(default=None, init=False, repr=False)

    def describe_table_version(self, request: Any) -> models.DescribeTableVersionResponse:
        """Forward the request; see `removed_at` for a version that was removed.

        Raises:
            TableVersionNotFoundError: (11) it was removed, and `removed_at` is None.
        """
        try:
            return super().describe_table_version(request)
        except spec_errors.TableVersionNotFoundError:
            model = as_model(models.DescribeTableVersionRequest, request)
            if self.removed_at is None or model.branch or model.version is None:
                raise
            path = f"{VERSIONS}/{manifest_names(model.version)[0]}"
            known = self.removed_at.at(path, model.version)
            return models.DescribeTableVersionResponse(
                version=models.TableVersion(version=model.version, manifest_path=known.path)
            )

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Check the version before and the lease, then forward the request.

        Raises:
            ConcurrentModificationError: (14) the lease was revoked, or another writer was first.
            LanceNamespaceError: `check_base` raised it.
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
        self.made.add(int(request["version"]))
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
        if self.check_base is not None:
            # The base can't change afterwards: if another writer creates this version, the commit fails.
            self._checked(request, self.check_base)
        self.check_allowed()
        return self.wrapped.create_table_version(request)

    def _checked(self, request: Any, check_base: Callable[[int], object]) -> None:
        try:
            check_base(request["version"] - 1)
        except Exception:
            if self.lease is not None:  # Lance doesn't remove its staged file
                self.lease.leftovers.append(f"{VERSIONS}/{staged_name(request['manifest_path'])}")
            raise

    @property
    def has_failed(self) -> bool:
        """Whether the last commit was refused, or may not have been made."""
        return self._error is not None

    def error_of(self, error: Exception) -> spec_errors.LanceNamespaceError:
        """Return the error to raise when Lance's commit failed with this one."""
        return self._error or spec_errors.ServiceUnavailableError(
            f"storage or metastore failed: {redact(str(error))}"
        )


@dataclass(eq=False)
class SingleVersionCommit(LeasedCommits):
    """A namespace of one table for one commit of Lance's core, which records the outcome of that commit."""

    target: ResolvedTable
    """The table; `wrapped` is its version authority."""
    base_version: int
    """The table's newest version as the driver read it, and as Lance is shown it; 0 if there was none."""
    announced: Callable[[], object] = lambda: None
    """Returns once the commit is announced, or raises the error because of which it isn't."""
    was_requested: bool = field(default=False, init=False)
    """Whether Lance requested to create a version; if not, Lance itself refused the commit."""
    failure: Exception | None = field(default=None, init=False)
    """The error because of which the version wasn't created, or may not have been; None if another writer was
    first, or the lease was revoked."""

    def namespace_id(self) -> str:
        """Return an id made of the table's location and the version."""
        return f"commit:{self.target.dataset.location}:{self.base_version + 1}"

    def commit(
        self, transaction: Transaction, latest: LanceDataset | None = None, *, stable_row_ids: bool = False
    ) -> None:
        """Commit a transaction with Lance as exactly the version after `base_version`.

        Args:
            transaction: what to commit.
            latest: the dataset at `base_version`; None lets Lance open it.
            stable_row_ids: whether a new dataset gets stable row ids.

        Raises:
            OSError, RuntimeError, ValueError: it failed; `failure` and `error_of` show whether Lance or the
                version authority refused it.
        """
        from lance import LanceDataset

        with panics_as_errors():
            LanceDataset.commit(
                self.target.dataset.location if latest is None else latest,
                transaction,
                read_version=transaction.read_version,
                storage_options=snapshot(self.target.dataset.storage_options),
                max_retries=0,
                enable_stable_row_ids=stable_row_ids,
                namespace_client=self,
                table_id=list(self.target.id.parts),
                namespace_client_managed_versioning=True,
            )

    def list_table_versions(self, request: Any) -> models.ListTableVersionsResponse:  # noqa: ARG002
        """Return `base_version` as the newest."""
        if not self.base_version:
            return models.ListTableVersionsResponse(versions=[])
        described = models.DescribeTableVersionRequest(id=self.target.parts, version=self.base_version)
        newest = self.wrapped.describe_table_version(described).version
        return models.ListTableVersionsResponse(versions=[newest])

    def check_allowed(self) -> None:
        """Check that the commit is announced, and that the lease is held.

        Raises:
            LanceNamespaceError: (14-17) it may not be made.
        """
        self.announced()
        super().check_allowed()

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Create the version after `base_version`.

        Raises:
            ConcurrentModificationError: (14) another writer was first, or the lease was revoked.
        """
        self.was_requested = True
        if request["version"] != self.base_version + 1:
            # Lance has read newer versions by path, and rebased the commit; it leaves its staged file behind.
            manifests = self.target.dataset.manifests
            manifests.remove_outdated(f"{VERSIONS}/{staged_name(request['manifest_path'])}")
            # If the name means another table now, that is the error, rather than a conflict to retry.
            change = self.target.change_since_resolved()
            self.failure = None if change is None or self.target.is_settled() else change
            raise self.failure or spec_errors.ConcurrentModificationError(
                f"expected a request for version {self.base_version + 1}, but Lance requested version "
                f"{request['version']}"
            )
        try:
            return super().create_table_version(request)
        except StaleTableError as error:
            self.failure = None if self.target.is_settled() else error
            raise
        except spec_errors.ConcurrentModificationError:
            raise
        except (spec_errors.TableNotFoundError, spec_errors.InvalidInputError) as error:
            self.failure = change = self.target.change_since_resolved()
            if change is None:
                self.failure = error
                raise
            self._error = change
            raise change from error
        except Exception as error:  # any type: the driver must know that the outcome is unknown
            self.failure = error
            raise

    def _create(self, request: Any) -> models.CreateTableVersionResponse:
        if self.lease is None or not isinstance(self.wrapped, StorageVersions):
            return super()._create(request)
        # The staged file is removed when the lease ends, whatever the outcome of the commit.
        self.lease.leftovers.append(f"{VERSIONS}/{staged_name(request['manifest_path'])}")
        return self.wrapped.create_if(request, self.check_allowed)
