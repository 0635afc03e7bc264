"""Between Thrift's objects and the plain views: what is written into a new entry, what is read from one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hmsclient.genthrift.hive_metastore import ttypes as hive2_types
from pymetastore.hive_metastore import ttypes as hive3_types

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.hive.dialect import Hive2Dialect
from airflow_provider_lancens.namespace.metastore import Expectation, Namespace, Table


def new_database(dialect: Hive2Dialect, namespace: Namespace) -> Any:
    """The Database object of a new namespace."""
    types = dialect.types
    owner_type = namespace.owner_type and types.PrincipalType._NAMES_TO_VALUES[namespace.owner_type]
    return types.Database(
        **dialect.database_fields(namespace.id),
        description=namespace.description,
        locationUri=namespace.location,
        parameters=dict(namespace.properties),
        ownerName=namespace.owner,
        ownerType=owner_type,
    )


def namespace_view(namespace: NamespaceId, raw: Any) -> Namespace:
    """A Database object as a view."""
    kinds = hive2_types.PrincipalType._VALUES_TO_NAMES  # the same numbers in every version
    return Namespace(
        id=namespace,
        location=raw.locationUri,
        description=raw.description,
        owner=raw.ownerName,
        owner_type=kinds.get(raw.ownerType),
        properties=dict(raw.parameters or {}),
    )


def new_table(dialect: Hive2Dialect, table: Table) -> Any:
    """The Table object of a new external entry.

    ``tableType`` alone isn't enough: HMS stores the entry as MANAGED_TABLE, whose data any
    Hive client's DROP TABLE deletes, unless the parameters say ``EXTERNAL=TRUE``.
    """
    types = dialect.types
    return types.Table(
        **dialect.table_fields(table.id),
        tableType=marks.EXTERNAL_TABLE,
        sd=types.StorageDescriptor(
            cols=[],
            location=table.location,
            inputFormat=marks.INPUT_FORMAT,
            outputFormat=marks.OUTPUT_FORMAT,
            serdeInfo=types.SerDeInfo(name=table.id.name, parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[],
        parameters=dict(table.parameters),
    )


def table_view(table: TableId, raw: Any) -> Table:
    """A Table object as a view."""
    parameters = dict(raw.parameters or {})
    external = raw.tableType == marks.EXTERNAL_TABLE or parameters.get(marks.EXTERNAL, "").upper() == "TRUE"
    location = raw.sd.location if raw.sd else None
    return Table(id=table, location=location, parameters=parameters, external=external)


def new_view(dialect: Hive2Dialect, view: TableId, parameters: Mapping[str, str]) -> Any:
    """The Table object of a view that selects nothing; a view has no folder."""
    types = dialect.types
    text = "select 1"
    return types.Table(
        **dialect.table_fields(view),
        tableType="VIRTUAL_VIEW",
        viewOriginalText=text,
        viewExpandedText=text,
        sd=types.StorageDescriptor(
            cols=[types.FieldSchema("one", "int", "")],
            serdeInfo=types.SerDeInfo(parameters={}),
            parameters={},
        ),
        partitionKeys=[],
        parameters=dict(parameters),
    )


def context(dialect: Hive2Dialect, expect: Expectation | None = None) -> Any:
    """What goes along with a create or an alter: no count of the folder's files; HIVE-26882's condition."""
    properties = {"DO_NOT_UPDATE_STATS": "true"}
    if expect:
        properties |= {"expected_parameter_key": expect.key, "expected_parameter_value": expect.value}
    return dialect.types.EnvironmentContext(properties)


def new_catalog(catalog: Namespace) -> Any:
    """The Catalog object of a new catalog."""
    return hive3_types.Catalog(
        name=catalog.id.name, description=catalog.description, locationUri=catalog.location
    )


def catalog_view(catalog: NamespaceId, raw: Any) -> Namespace:
    """A Catalog object as a view."""
    return Namespace(id=catalog, location=raw.locationUri, description=raw.description)
