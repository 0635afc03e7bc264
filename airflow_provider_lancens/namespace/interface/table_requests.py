"""Table requests of the specification."""

from __future__ import annotations

from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.interface import redacted_responses
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.locations import Location, as_uri, location_fault
from airflow_provider_lancens.namespace.metastore_protocol import Table
from airflow_provider_lancens.namespace.operations import namespace_operations
from airflow_provider_lancens.namespace.operations.repair import RepairOperations
from airflow_provider_lancens.namespace.requests import (
    as_model,
    choice,
    database_id,
    refuse,
    table_id,
)
from airflow_provider_lancens.redaction import redact

VERDICT, STORAGE_VERSION, EXPLANATION = "managed.verdict", "managed.storage-version", "managed.explanation"
"""Keys of a managed table's `DescribeTableResponse.context`, set if ``check_declared`` is requested."""
_OPEN_IT = "requires the dataset; open it with lance.dataset(namespace_client=..., table_id=...)"


class TableRequests(NamespaceCore):
    """Declare, register, list, describe, rename, deregister and drop tables."""

    def declare_table(self, request: AnyRequest) -> models.DeclareTableResponse:
        """Create a catalog table without a dataset.

        Raises:
            NamespaceNotFoundError: (1) its namespace doesn't exist.
            TableAlreadyExistsError: (5) it exists.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.DeclareTableRequest, request)
        target = table_id(model.id, self._metastore)
        catalog_table = self._tables.declare(target, model.location, model.properties or {})
        return redacted_responses.DeclareTableResponse(
            location=str(self._tables.location_of(catalog_table)),
            storage_options=self._config.vended(model.vend_credentials),
            properties=dict(catalog_table.parameters),
            managed_versioning=table_properties.is_managed(catalog_table),
        )

    def register_table(self, request: AnyRequest) -> models.RegisterTableResponse:
        """Create a catalog table for an existing dataset. Modes CREATE, OVERWRITE.

        Raises:
            NamespaceNotFoundError: (1) its namespace doesn't exist.
            TableAlreadyExistsError: (5) it exists.
            InvalidInputError: (13) the request is invalid.
        """
        model = as_model(models.RegisterTableRequest, request)
        mode = choice(
            model.mode,
            (namespace_operations.CREATE, namespace_operations.OVERWRITE),
            namespace_operations.CREATE,
            "mode",
        )
        target = table_id(model.id, self._metastore)
        catalog_table = self._tables.register(
            target, model.location, model.properties or {}, overwrite=mode == namespace_operations.OVERWRITE
        )
        return redacted_responses.RegisterTableResponse(
            location=str(self._tables.location_of(catalog_table)), properties=dict(catalog_table.parameters)
        )

    def list_tables(self, request: AnyRequest) -> models.ListTablesResponse:
        """List the names of a database's Lance tables, sorted and paginated.

        Raises:
            NamespaceNotFoundError: (1) the database doesn't exist.
            InvalidInputError: (13) the request is invalid, such as its limit or its page token.
        """
        model = as_model(models.ListTablesRequest, request)
        parent = database_id(model.id, self._metastore)
        declared = model.include_declared is not False
        page = self._tables.list(parent, model.page_token, model.limit, declared=declared)
        return models.ListTablesResponse(tables=page.names, page_token=page.token)

    def list_all_tables(self, request: AnyRequest) -> models.ListTablesResponse:
        """List the full identifiers of all Lance tables, sorted and paginated.

        Raises:
            InvalidInputError: (13) the request is invalid, such as its limit or its page token.
        """
        model = as_model(models.ListTablesRequest, request)
        declared = model.include_declared is not False
        page = self._tables.list_all(model.page_token, model.limit, declared=declared)
        return models.ListTablesResponse(tables=page.names, page_token=page.token)

    def describe_table(self, request: AnyRequest) -> models.DescribeTableResponse:
        """Return a Lance table's location, properties and, if managed, version.

        Raises:
            TableNotFoundError: (4) there is no such table.
            TableVersionNotFoundError: (11) the requested version doesn't exist.
            InvalidInputError: (13) it is not a Lance table, or the request is invalid.
        """
        model = as_model(models.DescribeTableRequest, request)
        refuse(model, {"tag": _OPEN_IT, "branch": _OPEN_IT, "load_detailed_metadata": _OPEN_IT})
        catalog_table = self._tables.get(table_id(model.id, self._metastore))
        location = self._tables.location_of(catalog_table)
        return redacted_responses.DescribeTableResponse(
            version=self._reads.response_version(catalog_table, model.version),
            location=str(location),
            table_uri=as_uri(location) if model.with_table_uri else None,
            storage_options=self._config.vended(model.vend_credentials),
            properties=dict(catalog_table.parameters),
            managed_versioning=table_properties.is_managed(catalog_table),
            is_only_declared=self._tables.is_only_declared(catalog_table) if model.check_declared else None,
            context=self._consistency(catalog_table)
            if model.check_declared and table_properties.is_managed(catalog_table)
            else None,
        )

    def _consistency(self, catalog_table: Table) -> dict[str, str]:
        found = RepairOperations(self._reads).compare_catalog_table(catalog_table)
        return {
            VERDICT: found.verdict,
            STORAGE_VERSION: str(found.storage_version),
            EXPLANATION: found.explanation,
        }

    def table_exists(self, request: AnyRequest) -> None:
        """Check that a Lance table exists, at the requested version if one is given.

        Raises:
            TableNotFoundError: (4) there is no such table.
            TableVersionNotFoundError: (11) the requested version doesn't exist.
            InvalidInputError: (13) it is not a Lance table, or the request is invalid.
        """
        model = as_model(models.TableExistsRequest, request)
        catalog_table = self._tables.get(table_id(model.id, self._metastore))
        self._reads.response_version(catalog_table, model.version)

    def rename_table(self, request: AnyRequest) -> models.RenameTableResponse:
        """Rename a Lance table, also into another namespace; its data stays where it is.

        Raises:
            UnsupportedOperationError: (0) the catalog table's type is MANAGED, or the metastore can't rename.
            NamespaceNotFoundError: (1) the new namespace doesn't exist.
            TableNotFoundError: (4) there is no such table.
            TableAlreadyExistsError: (5) the new name is taken.
            InvalidInputError: (13) it is not a Lance table, or the request is invalid.
        """
        model = as_model(models.RenameTableRequest, request)
        table = table_id(model.id, self._metastore)
        namespace = model.new_namespace_id or list(table.namespace.parts)
        self._tables.rename(table, table_id([*namespace, model.new_table_name], self._metastore))
        return models.RenameTableResponse()

    def deregister_table(self, request: AnyRequest) -> models.DeregisterTableResponse:
        """Drop a Lance table's catalog table and keep its data.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) it is not a Lance table.
        """
        model = as_model(models.DeregisterTableRequest, request)
        catalog_table = self._tables.deregister(table_id(model.id, self._metastore))
        return redacted_responses.DeregisterTableResponse(
            id=list(catalog_table.id.parts),
            location=_last_location(catalog_table),
            properties=dict(catalog_table.parameters),
        )

    def drop_table(self, request: AnyRequest) -> models.DropTableResponse:
        """Delete a Lance table's files and then drop its catalog table.

        Raises:
            TableNotFoundError: (4) there is no such table.
            InvalidInputError: (13) it is not a Lance table, or another catalog table shares its data.
        """
        model = as_model(models.DropTableRequest, request)
        catalog_table = self._tables.drop(table_id(model.id, self._metastore))
        return redacted_responses.DropTableResponse(
            id=list(catalog_table.id.parts),
            location=_last_location(catalog_table),
            properties=dict(catalog_table.parameters),
        )


def _last_location(catalog_table: Table) -> str | None:
    # A table of another client may lack a location, or have one that is refused; it can be dropped anyway.
    if catalog_table.location and not location_fault(catalog_table.location):
        return str(Location.of(catalog_table.location))
    return redact(catalog_table.location or "") or None
