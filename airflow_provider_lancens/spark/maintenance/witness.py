"""Who stands between Lance and the metastore while a table is maintained, and remembers what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_namespace.errors import LanceNamespaceError, ServiceUnavailableError

from airflow_provider_lancens.spark.stand_in import StandIn

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace
    from lance_namespace_urllib3_client import models


class CommitWitness(StandIn):
    """Passes all on, and keeps the error of the last commit: Lance's core drops an exception's type.

    It is no fence, as ingestion needs one: Lance may rebase a compaction or an index on what others
    committed meanwhile, and knows which of that it can't follow. Whether the version that it then
    asks for can be made, is for the metastore's compare-and-set to say.
    """

    def __init__(self, behind: LanceNamespace) -> None:
        """Take the namespace that decides the table's versions."""
        super().__init__(behind)
        self._failure: LanceNamespaceError | None = None

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Passed on; what it raises is remembered until a commit succeeds."""
        try:
            made = super().create_table_version(request)
        except LanceNamespaceError as error:
            self._failure = error
            raise
        self._failure = None
        return made

    def verdict(self, error: OSError) -> LanceNamespaceError:
        """The error to raise where Lance's commit failed with this one."""
        return self._failure or ServiceUnavailableError(f"storage or metastore failed: {error}")
