"""Requests about tables."""

from __future__ import annotations

from typing import Any

from lance_namespace_urllib3_client import models

from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.interface.core import AnyRequest, NamespaceCore
from airflow_provider_lancens.namespace.locations import as_uri
from airflow_provider_lancens.namespace.metastore import Table
from airflow_provider_lancens.namespace.operations import namespaces, tables
from airflow_provider_lancens.namespace.requests import (
    as_model,
    choice,
    database_id,
    refuse,
    table_id,
)

VERDICT, STORAGE_VERSION, WORDS = "managed.verdict", "managed.storage-version", "managed.words"
"""What the context of a managed table's description says of its storage, where ``check_declared`` asks."""
_OPEN_IT = "needs the data set; open it with lance.dataset(namespace_client=..., table_id=...)"


class TableRequests(NamespaceCore):
    """Declare, register, list, describe, rename, deregister and drop tables."""

    def declare_table(self, request: AnyRequest) -> models.DeclareTableResponse:
        """Write the entry of a new table and no data set; 1 no namespace, 5 exists, 13 bad input."""
        asked = as_model(models.DeclareTableRequest, request)
        target = table_id(asked.id, self._metastore)
        entry = self._tables.declare(target, asked.location, asked.properties or {})
        return models.DeclareTableResponse(
            location=tables.location_of(entry),
            storage_options=self._config.vended(asked.vend_credentials),
            properties=dict(entry.parameters),
            managed_versioning=marks.is_managed(entry),
        )

    def register_table(self, request: AnyRequest) -> models.RegisterTableResponse:
        """Write the entry of a table whose data set exists; 1, 5, 13. Modes CREATE, OVERWRITE."""
        asked = as_model(models.RegisterTableRequest, request)
        mode = choice(asked.mode, (namespaces.CREATE, namespaces.OVERWRITE), namespaces.CREATE, "mode")
        target = table_id(asked.id, self._metastore)
        entry = self._tables.register(
            target, asked.location, asked.properties or {}, overwrite=mode == namespaces.OVERWRITE
        )
        return models.RegisterTableResponse(
            location=tables.location_of(entry), properties=dict(entry.parameters)
        )

    def list_tables(self, request: AnyRequest) -> models.ListTablesResponse:
        """List the names of a database's Lance tables, sorted, in pages; 1 where it doesn't exist."""
        asked = as_model(models.ListTablesRequest, request)
        parent = database_id(asked.id, self._metastore)
        declared = asked.include_declared is not False
        page = self._tables.list(parent, asked.page_token, asked.limit, declared=declared)
        return models.ListTablesResponse(tables=page.names, page_token=page.token)

    def list_all_tables(self, request: AnyRequest) -> models.ListTablesResponse:
        """List the full identifiers of all Lance tables, sorted, in pages."""
        asked = as_model(models.ListTablesRequest, request)
        declared = asked.include_declared is not False
        page = self._tables.list_all(asked.page_token, asked.limit, declared=declared)
        return models.ListTablesResponse(tables=page.names, page_token=page.token)

    def describe_table(self, request: AnyRequest) -> models.DescribeTableResponse:
        """Answer a Lance table's location, properties and, if managed, version; 4, 11, 13."""
        asked = as_model(models.DescribeTableRequest, request)
        refuse(asked, {"tag": _OPEN_IT, "branch": _OPEN_IT, "load_detailed_metadata": _OPEN_IT})
        entry = self._tables.get(table_id(asked.id, self._metastore))
        location = tables.location_of(entry)
        return models.DescribeTableResponse(
            version=self._versions.answered(entry, asked.version),
            location=location,
            table_uri=as_uri(location) if asked.with_table_uri else None,
            storage_options=self._config.vended(asked.vend_credentials),
            properties=dict(entry.parameters),
            managed_versioning=marks.is_managed(entry),
            is_only_declared=self._tables.is_only_declared(entry) if asked.check_declared else None,
            context=self._consistency(entry) if asked.check_declared and marks.is_managed(entry) else None,
        )

    def _consistency(self, entry: Table) -> dict[str, str]:
        found = self._repair.compared(entry)
        return {VERDICT: found.verdict, STORAGE_VERSION: str(found.storage_version), WORDS: found.words}

    def table_exists(self, request: AnyRequest) -> None:
        """Return where a Lance table exists, at the asked version too; 4, 11, 13."""
        asked = as_model(models.TableExistsRequest, request)
        entry = self._tables.get(table_id(asked.id, self._metastore))
        self._versions.answered(entry, asked.version)

    def rename_table(self, request: AnyRequest) -> models.RenameTableResponse:
        """Give a Lance table another name, in another namespace too; its data stays; 0, 1, 4, 5, 13."""
        asked = as_model(models.RenameTableRequest, request)
        table = table_id(asked.id, self._metastore)
        namespace = asked.new_namespace_id or list(table.namespace.parts)
        self._tables.rename(table, table_id([*namespace, asked.new_table_name], self._metastore))
        return models.RenameTableResponse()

    def deregister_table(self, request: AnyRequest) -> models.DeregisterTableResponse:
        """Drop a Lance table's entry and leave its data; 4, 13."""
        asked = as_model(models.DeregisterTableRequest, request)
        entry = self._tables.deregister(table_id(asked.id, self._metastore))
        return models.DeregisterTableResponse(**_leaving(entry))

    def drop_table(self, request: AnyRequest) -> models.DropTableResponse:
        """Drop a Lance table's files and then its entry; 4, 13 where another entry shares the data."""
        asked = as_model(models.DropTableRequest, request)
        entry = self._tables.drop(table_id(asked.id, self._metastore))
        return models.DropTableResponse(**_leaving(entry))


def _leaving(entry: Table) -> dict[str, Any]:
    # Another writer's entry may lack a location; it can be dropped all the same.
    location = tables.location_of(entry) if entry.location else None
    return {"id": list(entry.id.parts), "location": location, "properties": dict(entry.parameters)}
