"""Wire differences between Hive 2 and Hive 3: the catalog, and the fields that hold it.

Hive 2 servers are called by `hmsclient`'s bindings. Servers with catalogs (3.x, 4.x) are called by
`pymetastore`'s newer bindings, so that an alter loses no field that Hive 2 didn't have.
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
        # Without it 3.1.3 refuses the whole batch because of one insert-only table of Hive's.
        request.capabilities = self.types.ClientCapabilities([self.types.ClientCapability.INSERT_ONLY_TABLES])
        return request


def catalog_of(namespace: NamespaceId) -> str:
    """Return the catalog of a database."""
    return namespace.parts[0] if len(namespace) > 1 else DEFAULT_CATALOG
