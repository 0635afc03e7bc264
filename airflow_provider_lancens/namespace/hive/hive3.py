"""Lance Namespace over Hive 3.x and 4.x: three levels, catalog, database and table."""

from __future__ import annotations

from typing import ClassVar

from airflow_provider_lancens.namespace.base import MetastoreNamespace
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.hive.catalogs import CatalogMetastore
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, hive_properties


class Hive3Namespace(MetastoreNamespace):
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
