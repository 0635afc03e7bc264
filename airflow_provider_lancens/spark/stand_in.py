"""Who stands between Lance and the namespace that decides a table's versions, to watch a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_namespace import LanceNamespace

if TYPE_CHECKING:
    from lance_namespace_urllib3_client import models


class StandIn(LanceNamespace):
    """Passes on what Lance's core asks while it reads and commits through a namespace."""

    def __init__(self, behind: LanceNamespace) -> None:
        """Take the namespace that decides the table's versions."""
        self._behind = behind

    def namespace_id(self) -> str:
        """That of the namespace behind."""
        return self._behind.namespace_id()

    def describe_table(self, request: Any) -> models.DescribeTableResponse:
        """Passed on: Lance refreshes credentials by it."""
        return self._behind.describe_table(request)

    def list_table_versions(self, request: Any) -> models.ListTableVersionsResponse:
        """Passed on: Lance asks for the newest."""
        return self._behind.list_table_versions(request)

    def describe_table_version(self, request: Any) -> models.DescribeTableVersionResponse:
        """Passed on: Lance reads what came in between, and after a refusal who was first."""
        return self._behind.describe_table_version(request)

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Passed on: Lance commits by it."""
        return self._behind.create_table_version(request)
