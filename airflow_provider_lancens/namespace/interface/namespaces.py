"""Requests about namespaces."""

from __future__ import annotations

from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.operations import namespaces
from airflow_provider_lancens.namespace.operations.cascade import CascadePlan
from airflow_provider_lancens.namespace.requests import as_model, child_namespace_id, choice, namespace_id

FOREIGN_TABLES = "cascade.foreign-tables"
"""Key of `DropNamespaceRequest.context`: comma-separated ids of tables that aren't Lance and may be
dropped by a cascade all the same; ``*`` for any. The models have no field for it."""


class NamespaceRequests(NamespaceCore):
    """CreateNamespace, ListNamespaces, DescribeNamespace, NamespaceExists, DropNamespace."""

    def create_namespace(self, request: AnyRequest) -> models.CreateNamespaceResponse:
        """Create a namespace. Modes CREATE (default), EXIST_OK, OVERWRITE.

        Raises:
            LanceNamespaceError: 1 no parent, 2 exists, 3 OVERWRITE of a non-empty one, 13 bad input.
        """
        asked = as_model(models.CreateNamespaceRequest, request)
        modes = (namespaces.CREATE, namespaces.EXIST_OK, namespaces.OVERWRITE)
        mode = choice(asked.mode, modes, namespaces.CREATE, "mode")
        target = child_namespace_id(asked.id, self._metastore, "created")
        properties = self._namespaces.create(target, mode, asked.properties or {})
        return models.CreateNamespaceResponse(properties=properties)

    def list_namespaces(self, request: AnyRequest) -> models.ListNamespacesResponse:
        """List the names one level below a namespace, sorted, in pages; 1 where it doesn't exist."""
        asked = as_model(models.ListNamespacesRequest, request)
        parent = namespace_id(asked.id, self._metastore)
        page = self._namespaces.list(parent, asked.page_token, asked.limit)
        return models.ListNamespacesResponse(namespaces=page.names, page_token=page.token)

    def describe_namespace(self, request: AnyRequest) -> models.DescribeNamespaceResponse:
        """Answer a namespace's properties; 1 where it doesn't exist."""
        asked = as_model(models.DescribeNamespaceRequest, request)
        target = namespace_id(asked.id, self._metastore)
        properties = {} if target.is_root else self._namespaces.describe(target)
        return models.DescribeNamespaceResponse(properties=properties)

    def namespace_exists(self, request: AnyRequest) -> None:
        """Return where a namespace exists; 1 where it doesn't."""
        asked = as_model(models.NamespaceExistsRequest, request)
        self._namespaces.exists(namespace_id(asked.id, self._metastore))

    def drop_namespace(self, request: AnyRequest) -> models.DropNamespaceResponse:
        """Drop a namespace; no file goes with it. Modes FAIL, SKIP; behaviors RESTRICT, CASCADE.

        The request's context may name foreign tables that a cascade may drop: see `FOREIGN_TABLES`.

        Raises:
            LanceNamespaceError: 1 doesn't exist and FAIL, 3 not empty or tables that aren't Lance, 13.
        """
        asked = as_model(models.DropNamespaceRequest, request)
        mode = choice(asked.mode, (namespaces.FAIL, namespaces.SKIP), namespaces.FAIL, "mode")
        behaviors = (namespaces.RESTRICT, namespaces.CASCADE)
        behavior = choice(asked.behavior, behaviors, namespaces.RESTRICT, "behavior")
        target = child_namespace_id(asked.id, self._metastore, "dropped")
        allowed = frozenset(filter(None, (asked.context or {}).get(FOREIGN_TABLES, "").split(",")))
        properties = self._namespaces.drop(target, mode, behavior, allowed)
        return models.DropNamespaceResponse(properties=properties)

    def plan_drop_namespace(self, request: AnyRequest) -> CascadePlan:
        """What `drop_namespace` with CASCADE would drop, as data; nothing is changed."""
        asked = as_model(models.DropNamespaceRequest, request)
        return self._namespaces.plan_drop(child_namespace_id(asked.id, self._metastore, "dropped"))
