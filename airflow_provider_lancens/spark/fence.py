"""The fence around one commit: exactly one version may be made, or none.

By itself Lance rebases a stale commit on whatever came in between (facts: `max_retries=0` is no
compare-and-set). Behind the fence it sees the table as the driver saw it, and what it makes is the
version after that, or nothing.
"""

from __future__ import annotations

from typing import Any

from lance_namespace.errors import ConcurrentModificationError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.manifests import Manifests, staged_name
from airflow_provider_lancens.namespace.marks import WRITES
from airflow_provider_lancens.namespace.storage import VERSIONS
from airflow_provider_lancens.namespace.writes import Write
from airflow_provider_lancens.spark.stand_in import StandIn
from airflow_provider_lancens.spark.target import Target


class CommitFence(StandIn):
    """A namespace of one table, for Lance's core to make one commit through. It remembers how that went.

    Lance's core drops the type of an exception that a namespace raises, so the driver asks the
    fence, not the exception, what happened.
    """

    def __init__(self, target: Target, seen: int, write: Write | None = None) -> None:
        """Guard the versions of a table.

        Args:
            target: the table.
            seen: its newest version when the driver looked, 0 where there was none.
            write: what a managed table's entry is to remember with the commit.
        """
        super().__init__(target.versions)
        self._manifests = Manifests(target.dataset.location, target.dataset.storage_options)
        self._table_id = target.parts
        self._write = write
        self.seen = seen
        """The newest version that Lance is shown."""
        self.asked = False
        """Whether a version was asked for at all; if not, Lance itself refused the commit."""
        self.failure: Exception | None = None
        """What went wrong while it was made, where it is open whether it was; None if another was first."""

    def list_table_versions(self, request: Any) -> models.ListTableVersionsResponse:  # noqa: ARG002 as it was seen
        """The version that the driver saw, as the newest."""
        if not self.seen:
            return models.ListTableVersionsResponse(versions=[])
        asked = models.DescribeTableVersionRequest(id=self._table_id, version=self.seen)
        newest = self._behind.describe_table_version(asked).version
        return models.ListTableVersionsResponse(versions=[newest])

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Make the version after the one seen.

        Raises:
            ConcurrentModificationError: (14) another writer was first.
        """
        self.asked = True
        if request["version"] != self.seen + 1:
            # Lance reads what came in between by path, and would go on; it leaves what it staged.
            self._manifests.remove(f"{VERSIONS}/{staged_name(request['manifest_path'])}")
            raise ConcurrentModificationError(
                f"version {self.seen + 1} was to be made, but Lance asked for {request['version']}"
            )
        try:
            return self._behind.create_table_version(self._remembered(request))
        except ConcurrentModificationError:
            raise
        except Exception as error:  # whatever it is, the driver must learn that the outcome is open
            self.failure = error
            raise

    def _remembered(self, request: Any) -> dict[str, Any]:
        return {**request, "metadata": {WRITES: self._write.as_text()}} if self._write else request
