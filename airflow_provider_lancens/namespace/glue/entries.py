"""Between Glue's objects and the plain views: what is written into an entry, what is read from one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_lancens.identifiers import DELIMITER, NamespaceId, TableId
from airflow_provider_lancens.namespace import fields, marks
from airflow_provider_lancens.namespace.metastore import Change, Namespace, Table

Raw = Mapping[str, Any]


def is_nameable(name: str) -> bool:
    """Whether an identifier can name it: Glue also holds names with the delimiter in them."""
    return DELIMITER not in name and bool(name.strip())


def database_input(namespace: Namespace) -> dict[str, Any]:
    """The DatabaseInput of a new namespace; Glue has no field for an owner, so it is a parameter."""
    owner = {fields.OWNER: namespace.owner, fields.OWNER_TYPE: namespace.owner_type}
    described = {"Description": namespace.description, "LocationUri": namespace.location}
    return {
        "Name": namespace.id.name,
        "Parameters": {**namespace.properties, **_given(owner)},
        **_given(described),
    }


def namespace_view(namespace: NamespaceId, raw: Raw) -> Namespace:
    """A Database object as a view."""
    parameters = dict(raw.get("Parameters") or {})
    return Namespace(
        id=namespace,
        location=raw.get("LocationUri"),
        description=raw.get("Description"),
        owner=parameters.pop(fields.OWNER, None),
        owner_type=parameters.pop(fields.OWNER_TYPE, None),
        properties=parameters,
    )


def table_input(table: Table) -> dict[str, Any]:
    """The TableInput of a new external entry."""
    return {
        "Name": table.id.name,
        "TableType": marks.EXTERNAL_TABLE,
        "Parameters": dict(table.parameters),
        "PartitionKeys": [],  # Athena fails on an entry without them
        "StorageDescriptor": {
            "Columns": [],
            "Location": table.location,
            "InputFormat": marks.INPUT_FORMAT,
            "OutputFormat": marks.OUTPUT_FORMAT,
            "SerdeInfo": {"Name": table.id.name, "Parameters": {}},
        },
    }


def table_view(table: TableId, raw: Raw) -> Table:
    """A Table object as a view. It is external whatever its type says: Glue never touches a file."""
    storage = raw.get("StorageDescriptor") or {}
    return Table(table, storage.get("Location"), dict(raw.get("Parameters") or {}))


def edited(shape: Any, raw: Raw, change: Change) -> dict[str, Any]:
    """The TableInput that changes an entry's parameters and leaves everything else.

    UpdateTable replaces the entry by its input, so all that may be written goes back as it was read.

    Args:
        shape: the SDK's model of TableInput.
        raw: the entry as it was read.
        change: of its parameters.
    """
    return {**_writable(shape, raw), "Parameters": change.applied_to(raw.get("Parameters") or {})}


def _writable(shape: Any, value: Any) -> Any:
    # Glue reads out more than it takes back; which members are which, the SDK's model knows best.
    if shape.type_name == "structure":
        members = shape.members.items()
        return {
            name: _writable(member, value[name]) for name, member in members if value.get(name) is not None
        }
    if shape.type_name == "list":
        return [_writable(shape.member, element) for element in value]
    return value


def _given(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}
