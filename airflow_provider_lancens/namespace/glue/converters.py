"""Conversions between Glue's objects and the protocol's data classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import namespace_properties, table_properties
from airflow_provider_lancens.namespace.metastore_protocol import (
    CatalogTable,
    Column,
    Namespace,
    ParameterChange,
)

Raw = Mapping[str, Any]


def database_input(namespace: Namespace) -> dict[str, Any]:
    """Return the DatabaseInput of a new namespace; Glue has no owner field, so that is a parameter."""
    owner = {
        namespace_properties.OWNER: namespace.owner,
        namespace_properties.OWNER_TYPE: namespace.owner_type,
    }
    described = {"Description": namespace.description, "LocationUri": namespace.location}
    return {
        "Name": namespace.id.name,
        "Parameters": {**namespace.properties, **_without_none(owner)},
        **_without_none(described),
    }


def to_namespace(namespace: NamespaceId, raw: Raw) -> Namespace:
    """Convert a Database object to a `Namespace`."""
    parameters = dict(raw.get("Parameters") or {})
    return Namespace(
        id=namespace,
        location=raw.get("LocationUri"),
        description=raw.get("Description"),
        owner=parameters.pop(namespace_properties.OWNER, None),
        owner_type=parameters.pop(namespace_properties.OWNER_TYPE, None),
        properties=parameters,
    )


def table_input(table: CatalogTable) -> dict[str, Any]:
    """Return the TableInput of a new external table."""
    return {
        "Name": table.id.name,
        "TableType": table_properties.EXTERNAL_TABLE,
        "Parameters": dict(table.parameters),
        "PartitionKeys": [],  # Athena fails on a table without them
        "StorageDescriptor": {
            "Columns": [],
            "Location": table.location,
            "InputFormat": table_properties.INPUT_FORMAT,
            "OutputFormat": table_properties.OUTPUT_FORMAT,
            "SerdeInfo": {"Name": table.id.name, "Parameters": {}},
        },
    }


def to_table(table: TableId, raw: Raw) -> CatalogTable:
    """Convert Glue's object, always to an external table regardless of its type: Glue deletes no files."""
    storage = raw.get("StorageDescriptor") or {}
    created = raw.get("CreateTime")
    return CatalogTable(
        id=table,
        location=storage.get("Location"),
        parameters=dict(raw.get("Parameters") or {}),
        created=None if created is None else int(created.timestamp()),
        columns=tuple(
            Column(column["Name"], column.get("Type", "")) for column in storage.get("Columns") or ()
        ),
    )


def updated_input(shape: Any, raw: Raw, change: ParameterChange) -> dict[str, Any]:
    """Return the TableInput that changes a table's parameters and columns, and nothing else.

    UpdateTable replaces the table by its input, so all writable fields are sent back as they were read.

    Args:
        shape: the SDK's model of TableInput.
        raw: the Table object as it was read.
        change: the change.
    """
    kept = _writable(shape, raw)
    changed = {**kept, "Parameters": change.applied_to(raw.get("Parameters") or {})}
    if change.columns is not None:
        columns = [{"Name": column.name, "Type": column.type} for column in change.columns]
        changed["StorageDescriptor"] = {**kept.get("StorageDescriptor", {}), "Columns": columns}
    if change.location is not None:
        changed["StorageDescriptor"] = {**changed.get("StorageDescriptor", {}), "Location": change.location}
    return changed


def _writable(shape: Any, value: Any) -> Any:
    # Glue returns more members than it accepts; the SDK's model defines which ones are writable.
    if shape.type_name == "structure":
        members = shape.members.items()
        return {
            name: _writable(member, value[name]) for name, member in members if value.get(name) is not None
        }
    if shape.type_name == "list":
        return [_writable(shape.member, element) for element in value]
    return value


def _without_none(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}
