"""Conversions between Thrift objects and the protocol's data classes, in the dialects of Hive 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore as Hive2Service
from hmsclient.genthrift.hive_metastore import ttypes as hive2_types
from lance_namespace.errors import InternalError
from pymetastore.hive_metastore import ThriftHiveMetastore as Hive3Service
from pymetastore.hive_metastore import ttypes as hive3_types

from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Column, Expectation, Namespace

DEFAULT_CATALOG = "hive"
DEFAULT_DATABASE = "default"


class Hive2Dialect:
    """Dialect of a server without catalogs."""

    types: Any = hive2_types
    service: Any = Hive2Service
    has_catalogs = False

    def database(self, namespace: NamespaceId) -> str:
        """Return a database's name for the older calls."""
        return namespace.name

    def database_fields(self, namespace: NamespaceId) -> dict[str, str]:
        """Return the fields of a Database object that name it."""
        return {"name": namespace.name}

    def table_fields(self, table: TableId) -> dict[str, str]:
        """Return the fields of a Table object that name it."""
        return {"dbName": table.namespace.name, "tableName": table.name}

    def table_request(self, table: TableId) -> Any:
        """Return the request that reads one table."""
        return self.types.GetTableRequest(dbName=table.namespace.name, tblName=table.name)

    def tables_request(self, namespace: NamespaceId, names: Sequence[str]) -> Any:
        """Return the request that reads many tables."""
        return self.types.GetTablesRequest(dbName=namespace.name, tblNames=list(names))


class Hive3Dialect(Hive2Dialect):
    """Dialect of a server with catalogs; a two-level name means the catalog ``hive``."""

    types = hive3_types
    service = Hive3Service
    has_catalogs = True

    def database(self, namespace: NamespaceId) -> str:
        """Return ``@catalog#database``, as the older calls expect it."""
        return f"@{catalog_of(namespace)}#{namespace.name}"

    def database_fields(self, namespace: NamespaceId) -> dict[str, str]:
        """Return the fields of a Database object that name it."""
        return {**super().database_fields(namespace), "catalogName": catalog_of(namespace)}

    def table_fields(self, table: TableId) -> dict[str, str]:
        """Return the fields of a Table object that name it."""
        return {**super().table_fields(table), "catName": catalog_of(table.namespace)}

    def table_request(self, table: TableId) -> Any:
        """Return the request that reads one table; its ``dbName`` takes no catalog prefix."""
        request = super().table_request(table)
        request.catName = catalog_of(table.namespace)
        return request

    def tables_request(self, namespace: NamespaceId, names: Sequence[str]) -> Any:
        """Return the request that reads many tables."""
        request = super().tables_request(namespace, names)
        request.catName = catalog_of(namespace)
        # Without this capability, 3.1.3 refuses a whole batch that contains one insert-only table.
        request.capabilities = self.types.ClientCapabilities([self.types.ClientCapability.INSERT_ONLY_TABLES])
        return request


def catalog_of(namespace: NamespaceId) -> str:
    """Return the catalog of a database."""
    return namespace.parts[0] if len(namespace) > 1 else DEFAULT_CATALOG


_UNDECODABLE = "\N{REPLACEMENT CHARACTER}"
"""Silently substituted by Thrift's decoder for bytes that are invalid UTF-8."""


def new_database(dialect: Hive2Dialect, namespace: Namespace) -> Any:
    """Return the Database object of a new namespace."""
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


def to_namespace(namespace: NamespaceId, raw: Any) -> Namespace:
    """Convert a Database object to a `Namespace`."""
    kinds = hive2_types.PrincipalType._VALUES_TO_NAMES  # the same numbers in every version
    return Namespace(
        id=namespace,
        location=raw.locationUri,
        description=raw.description,
        owner=raw.ownerName,
        owner_type=kinds.get(raw.ownerType),
        properties=dict(raw.parameters or {}),
    )


def new_table(dialect: Hive2Dialect, table: CatalogTable) -> Any:
    """Return the Table object of a new external table.

    ``tableType`` alone isn't enough: HMS stores the table as MANAGED_TABLE, whose data any
    Hive client's DROP TABLE deletes, unless the parameters say ``EXTERNAL=TRUE``.
    """
    types = dialect.types
    return types.Table(
        **dialect.table_fields(table.id),
        tableType=table_properties.EXTERNAL_TABLE,
        sd=types.StorageDescriptor(
            cols=[],
            location=table.location,
            inputFormat=table_properties.INPUT_FORMAT,
            outputFormat=table_properties.OUTPUT_FORMAT,
            serdeInfo=types.SerDeInfo(name=table.id.name, parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[],
        parameters=dict(table.parameters),
    )


def to_table(table: TableId, raw: Any) -> CatalogTable:
    """Convert a Table object to a `CatalogTable`.

    Raises:
        InternalError: (18) the reply is empty, or its location isn't valid UTF-8.
    """
    if raw is None:
        raise InternalError(f"cannot read table {table}: the metastore's reply is empty")
    parameters = dict(raw.parameters or {})
    external = (
        raw.tableType == table_properties.EXTERNAL_TABLE
        or parameters.get(table_properties.EXTERNAL, "").upper() == "TRUE"
    )
    location = raw.sd.location if raw.sd else None
    if location and _UNDECODABLE in location:
        raise InternalError(f"cannot read table {table}: its location is not valid UTF-8: {location!r}")
    return CatalogTable(
        id=table,
        location=location,
        parameters=parameters,
        external=external,
        created=raw.createTime,
        columns=tuple(Column(column.name, column.type) for column in (raw.sd and raw.sd.cols) or ()),
    )


def described(dialect: Hive2Dialect, columns: Sequence[Column]) -> list[Any]:
    """Return the FieldSchema objects of columns."""
    return [dialect.types.FieldSchema(column.name, column.type, None) for column in columns]


def new_view(dialect: Hive2Dialect, view: TableId, parameters: Mapping[str, str]) -> Any:
    """Return the Table object of a trivial view; a view has no folder."""
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


def environment_context(dialect: Hive2Dialect, expect: Expectation | None = None) -> Any:
    """Return the EnvironmentContext of a create or an alter: no statistics; with HIVE-26882's condition."""
    properties = {"DO_NOT_UPDATE_STATS": "true"}
    if expect:
        properties |= {"expected_parameter_key": expect.key, "expected_parameter_value": expect.value}
    return dialect.types.EnvironmentContext(properties)


def new_catalog(catalog: Namespace) -> Any:
    """Return the Catalog object of a new catalog."""
    return hive3_types.Catalog(
        name=catalog.id.name, description=catalog.description, locationUri=catalog.location
    )


def catalog_to_namespace(catalog: NamespaceId, raw: Any) -> Namespace:
    """Convert a Catalog object to a `Namespace`.

    Raises:
        InternalError: (18) the reply is empty.
    """
    if raw is None:
        raise InternalError(f"cannot read catalog {catalog}: the metastore's reply is empty")
    return Namespace(id=catalog, location=raw.locationUri, description=raw.description)
