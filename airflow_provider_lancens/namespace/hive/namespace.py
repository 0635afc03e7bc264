"""Lance Namespaces over Hive: two levels on 2.x, three with catalogs on 3.x and 4.x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.hive.foreign_tables import ForeignTable
from airflow_provider_lancens.namespace.hive.metastore import CatalogMetastore, HiveMetastore
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, hive_properties
from airflow_provider_lancens.namespace.metastore_namespace import MetastoreNamespace
from airflow_provider_lancens.namespace.requests import database_id


class HiveNamespace(MetastoreNamespace):
    """Base class, with the features of a Hive Metastore beyond Lance tables."""

    def __init__(
        self, metastore: HiveMetastore, storage: StorageConfig, properties: Mapping[str, str]
    ) -> None:
        super().__init__(metastore, storage, properties)
        self._hive = metastore

    def foreign_tables(self, database: Sequence[str]) -> Sequence[ForeignTable]:
        """Return the tables and views of a database that aren't Lance tables, sorted by name.

        Args:
            database: its identifier.

        Raises:
            NamespaceNotFoundError: (1) there is no such database.
            InvalidInputError: (13) the identifier is invalid.
        """
        return self._hive.foreign_tables(database_id(database, self._hive))


class Hive2Namespace(HiveNamespace):
    """Lance tables in the databases of a Hive Metastore, as ``database$table``.

    On a 3.x or 4.x server these are the databases of the catalog ``hive``.

    Properties, all strings: ``uri`` (thrift://host:port, several separated by commas), ``root``,
    ``client.pool-size``, ``client.connect-timeout`` and ``client.read-timeout`` (seconds),
    ``client.table-filter``, ``vend_credentials``, ``managed_by`` (of new tables), ``storage.*``.
    """

    _kind: ClassVar[str] = "hive2"

    def __init__(self, **properties: str) -> None:
        """Parse the properties; nothing is opened.

        Raises:
            InvalidInputError: (13) a property is missing, misspelled or invalid.
        """
        values = hive_properties(properties)
        super().__init__(HiveMetastore(ClientSettings.parse(values)), StorageConfig.parse(values), properties)


class Hive3Namespace(HiveNamespace):
    """Lance tables in a Hive Metastore with catalogs, as ``catalog$database$table``.

    A 2.x server has no catalogs, and is refused with code 0. Properties are `Hive2Namespace`'s.
    """

    _kind: ClassVar[str] = "hive3"

    def __init__(self, **properties: str) -> None:
        """Parse the properties; nothing is opened.

        Raises:
            InvalidInputError: (13) a property is missing, misspelled or invalid.
        """
        values = hive_properties(properties)
        super().__init__(
            CatalogMetastore(ClientSettings.parse(values)), StorageConfig.parse(values), properties
        )
