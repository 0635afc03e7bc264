"""Namespaces that are passed to Lance's core in place of a table's version authority, and forward to it.

Loaded when a table with such an authority is opened, or a commit is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lance_namespace import LanceNamespace
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.requests import as_model


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
        """Forward the request, by which Lance reads commits in between, or the commit that won a conflict."""
        return self.wrapped.describe_table_version(request)

    def create_table_version(self, request: Any) -> models.CreateTableVersionResponse:
        """Forward the request, by which Lance commits."""
        return self.wrapped.create_table_version(request)


@dataclass(eq=False)
class KnownVersion(NamespaceProxy):
    """Tells Lance of a version that was just looked up, which Lance looks up once more to open it."""

    known: models.TableVersion
    """The version as its authority described it."""
    _is_told: bool = field(default=False, init=False)

    def describe_table_version(self, request: Any) -> models.DescribeTableVersionResponse:
        """Return the known version the first time that it is asked for; forward all other requests."""
        model = as_model(models.DescribeTableVersionRequest, request)
        if self._is_told or model.branch or model.version != self.known.version:
            return super().describe_table_version(request)
        self._is_told = True
        return models.DescribeTableVersionResponse(version=self.known)
