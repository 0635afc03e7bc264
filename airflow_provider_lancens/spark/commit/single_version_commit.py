"""The fence around one commit: it creates exactly the given version, or none.

By itself Lance rebases a stale commit on the commits in between (facts: `max_retries=0` is no
compare-and-set). Through the fence Lance sees the table as the driver saw it, and creates the version after
that, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import ConcurrentModificationError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.storage.manifests import staged_name
from airflow_provider_lancens.namespace.storage.object_store import VERSIONS
from airflow_provider_lancens.spark.commit.leased_commits import LeasedCommits
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    from lance import Transaction

LANCE_ERRORS = (OSError, RuntimeError, ValueError)
"""What Lance raises for any failure of a commit."""


@dataclass(eq=False)
class SingleVersionCommit(LeasedCommits):
    """A namespace of one table for one commit of Lance's core, which records the outcome of that commit."""

    target: ResolvedTable
    """The table; `behind` is what decides its versions."""
    seen: int
    """Its newest version as the driver saw it, and as Lance sees it; 0 if there was none."""
    asked: bool = field(default=False, init=False)
    """Whether Lance asked to create a version; if not, Lance itself refused the commit."""
    failure: Exception | None = field(default=None, init=False)
    """The error of a commit with unknown outcome; None if another writer was first."""

    def namespace_id(self) -> str:
        """Return an id made of the table's location and the version."""
        return f"commit:{self.target.dataset.location}:{self.seen + 1}"

    def commit(self, transaction: Transaction, *, stable_row_ids: bool = False) -> None:
        """Commit a transaction with Lance as exactly the version after the one that the driver saw.

        Raises:
            OSError, RuntimeError, ValueError: it failed; `failure` and `error_of` tell whether Lance or the
                version authority refused it.
        """
        from lance import LanceDataset

        LanceDataset.commit(
            self.target.dataset.location,
            transaction,
            read_version=transaction.read_version,
            storage_options=dict(self.target.dataset.storage_options),
            max_retries=0,
            enable_stable_row_ids=stable_row_ids,
            namespace_client=self,
            table_id=list(self.target.id.parts),
            namespace_client_managed_versioning=True,
        )

    def list_table_versions(self, request: Any) -> models.ListTableVersionsResponse:  # noqa: ARG002 as it was seen
        """Return the version that the driver saw as the newest."""
        if not self.seen:
            return models.ListTableVersionsResponse(versions=[])
        asked = models.DescribeTableVersionRequest(id=self.target.parts, version=self.seen)
        newest = self.behind.describe_table_version(asked).version
        return models.ListTableVersionsResponse(versions=[newest])

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Create the version after the one the driver saw.

        Raises:
            ConcurrentModificationError: (14) another writer was first, or the lease was revoked.
        """
        self.asked = True
        if request["version"] != self.seen + 1:
            # Lance reads the versions in between by path, and would go on. It leaves its staged file behind.
            manifests = self.target.dataset.manifests
            manifests.remove(f"{VERSIONS}/{staged_name(request['manifest_path'])}")
            raise ConcurrentModificationError(
                f"expected a request for version {self.seen + 1}, but Lance requested version "
                f"{request['version']}"
            )
        try:
            return super().create_table_version(request)
        except ConcurrentModificationError:
            raise
        except Exception as error:  # of any type: the driver must know that the outcome is unknown
            self.failure = error
            raise
