"""Namespace requests of the specification."""

from __future__ import annotations

from collections.abc import Collection

from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace.interface import redacted_responses
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.operations import namespace_operations
from airflow_provider_lancens.namespace.operations.cascade import CascadePlan
from airflow_provider_lancens.namespace.requests import (
    as_model,
    child_namespace_id,
    choice,
    foreign_tables_of,
    namespace_id,
)

FOREIGN_TABLES = "cascade.foreign-tables"
"""Key of `DropNamespaceRequest.context`: comma-separated ids of tables that aren't Lance but may be
dropped by a cascade; ``*`` for any. The models have no field for it."""


class NamespaceRequests(NamespaceCore):
    """CreateNamespace, ListNamespaces, DescribeNamespace, NamespaceExists, DropNamespace."""

    def create_namespace(self, request: AnyRequest) -> models.CreateNamespaceResponse:
        """Create a namespace. Modes CREATE (default), EXIST_OK, OVERWRITE.

        Raises:
            NamespaceNotFoundError: (1) its parent doesn't exist.
            NamespaceAlreadyExistsError: (2) it exists.
            NamespaceNotEmptyError: (3) the mode is OVERWRITE and it isn't empty.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.CreateNamespaceRequest, request)
        modes = (namespace_operations.CREATE, namespace_operations.EXIST_OK, namespace_operations.OVERWRITE)
        mode = choice(model.mode, modes, namespace_operations.CREATE, "mode")
        target = child_namespace_id(model.id, self._metastore, "created")
        properties = self._namespaces.create(target, mode, model.properties or {})
        return redacted_responses.CreateNamespaceResponse(properties=properties)

    def list_namespaces(self, request: AnyRequest) -> models.ListNamespacesResponse:
        """List the names one level below a namespace, sorted and paginated.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the request is invalid, such as its limit or its page token.
        """
        model = as_model(models.ListNamespacesRequest, request)
        parent = namespace_id(model.id, self._metastore)
        page = self._namespaces.list(parent, model.page_token, model.limit)
        return models.ListNamespacesResponse(namespaces=page.names, page_token=page.token)

    def describe_namespace(self, request: AnyRequest) -> models.DescribeNamespaceResponse:
        """Return a namespace's properties.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.DescribeNamespaceRequest, request)
        target = namespace_id(model.id, self._metastore)
        properties = {} if target.is_root else self._namespaces.describe(target)
        return redacted_responses.DescribeNamespaceResponse(properties=properties)

    def namespace_exists(self, request: AnyRequest) -> None:
        """Check that a namespace exists.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.NamespaceExistsRequest, request)
        self._namespaces.exists(namespace_id(model.id, self._metastore))

    def drop_namespace(self, request: AnyRequest) -> models.DropNamespaceResponse:
        """Drop a namespace without deleting files. Modes FAIL, SKIP; behaviors RESTRICT, CASCADE.

        The request's context may name foreign tables that a cascade may drop: see `FOREIGN_TABLES`.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist and the mode is FAIL.
            NamespaceNotEmptyError: (3) it isn't empty, or has tables that aren't Lance.
            InvalidInputError: (13) the request is invalid, or the server never drops this namespace.
        """
        model = as_model(models.DropNamespaceRequest, request)
        mode = choice(
            model.mode,
            (namespace_operations.FAIL, namespace_operations.SKIP),
            namespace_operations.FAIL,
            "mode",
        )
        behaviors = (namespace_operations.RESTRICT, namespace_operations.CASCADE)
        behavior = choice(model.behavior, behaviors, namespace_operations.RESTRICT, "behavior")
        target = child_namespace_id(model.id, self._metastore, "dropped")
        named = (model.context or {}).get(FOREIGN_TABLES, "")
        allowed = foreign_tables_of(filter(None, named.split(",")), self._metastore)
        properties = self._namespaces.drop(target, mode, behavior, allowed)
        return redacted_responses.DropNamespaceResponse(properties=properties)

    def plan_drop_namespace(self, request: AnyRequest) -> CascadePlan:
        """Return what `drop_namespace` with CASCADE would drop; nothing is changed.

        Raises:
            NamespaceNotFoundError: (1) it doesn't exist.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.DropNamespaceRequest, request)
        return self._namespaces.plan_drop(child_namespace_id(model.id, self._metastore, "dropped"))

    def drop_planned_namespace(
        self, plan: CascadePlan, foreign_tables: Collection[str] = ()
    ) -> models.DropNamespaceResponse:
        """Drop what a plan of `plan_drop_namespace` contains, and nothing else, without deleting files.

        Args:
            plan: the plan. Tables of it that are gone meanwhile count as dropped.
            foreign_tables: identifiers of tables that aren't Lance but may be dropped; ``*`` for any.

        Raises:
            NamespaceNotFoundError: (1) the namespace doesn't exist any more.
            NamespaceNotEmptyError: (3) it has tables that aren't Lance and aren't allowed; or it has changed
                since the plan: a table was created, replaced or moved. The message names them.
            InvalidInputError: (13) an identifier is invalid, or the server never drops this namespace.
        """
        allowed = foreign_tables_of(foreign_tables, self._metastore)
        return redacted_responses.DropNamespaceResponse(
            properties=self._namespaces.drop_planned(plan, allowed)
        )
