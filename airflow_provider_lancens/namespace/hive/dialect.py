"""What differs between Hive 2 and Hive 3 on the wire: the catalog, and the fields that carry it.

Hive 2 speaks through `hmsclient`'s bindings. Servers with catalogs (3.x, 4.x) are spoken to
through newer bindings, `pymetastore`'s, so that an alter loses no field that Hive 2 didn't know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore as Hive2Service
from hmsclient.genthrift.hive_metastore import ttypes as hive2_types
from pymetastore.hive_metastore import ThriftHiveMetastore as Hive3Service
from pymetastore.hive_metastore import ttypes as hive3_types

from airflow_provider_lancens.identifiers import NamespaceId, TableId

DEFAULT_CATALOG = "hive"
DEFAULT_DATABASE = "default"


class Hive2Dialect:
    """A server without catalogs."""

    types: Any = hive2_types
    service: Any = Hive2Service
    has_catalogs = False

    def database(self, namespace: NamespaceId) -> str:
        """A database as the older calls name it."""
        return namespace.name

    def database_fields(self, namespace: NamespaceId) -> dict[str, str]:
        """The fields of a Database object that name it."""
        return {"name": namespace.name}

    def table_fields(self, table: TableId) -> dict[str, str]:
        """The fields of a Table object that name it."""
        return {"dbName": table.namespace.name, "tableName": table.name}

    def table_request(self, table: TableId) -> Any:
        """The request that reads one entry."""
        return self.types.GetTableRequest(dbName=table.namespace.name, tblName=table.name)

    def tables_request(self, namespace: NamespaceId, names: Sequence[str]) -> Any:
        """The request that reads many entries."""
        return self.types.GetTablesRequest(dbName=namespace.name, tblNames=list(names))


class Hive3Dialect(Hive2Dialect):
    """A server with catalogs; a two-level name means the catalog ``hive``."""

    types = hive3_types
    service = Hive3Service
    has_catalogs = True

    def database(self, namespace: NamespaceId) -> str:
        """``@catalog#database``, as the older calls take it."""
        return f"@{catalog_of(namespace)}#{namespace.name}"

    def database_fields(self, namespace: NamespaceId) -> dict[str, str]:
        """The fields of a Database object that name it."""
        return {**super().database_fields(namespace), "catalogName": catalog_of(namespace)}

    def table_fields(self, table: TableId) -> dict[str, str]:
        """The fields of a Table object that name it."""
        return {**super().table_fields(table), "catName": catalog_of(table.namespace)}

    def table_request(self, table: TableId) -> Any:
        """The request that reads one entry; its ``dbName`` takes no catalog prefix."""
        request = super().table_request(table)
        request.catName = catalog_of(table.namespace)
        return request

    def tables_request(self, namespace: NamespaceId, names: Sequence[str]) -> Any:
        """The request that reads many entries."""
        request = super().tables_request(namespace, names)
        request.catName = catalog_of(namespace)
        return request


def catalog_of(namespace: NamespaceId) -> str:
    """The catalog that a database lies in."""
    return namespace.parts[0] if len(namespace) > 1 else DEFAULT_CATALOG
