"""Lance Namespace over AWS Glue: two levels, database and table."""

from __future__ import annotations

from typing import ClassVar

from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from airflow_provider_lancens.namespace.glue.settings import GlueSettings, glue_properties
from airflow_provider_lancens.namespace.metastore_namespace import MetastoreNamespace


class GlueNamespace(MetastoreNamespace):
    """Lance tables in the databases of an AWS Glue Data Catalog, as ``database$table``.

    Properties, all strings: ``catalog_id``, ``endpoint``, ``region``, ``access_key_id`` with
    ``secret_access_key`` and, for a session, ``session_token`` (without them, the SDK's default
    credential chain), ``root``, ``client.connect-timeout`` and ``client.read-timeout`` (seconds),
    ``client.max-attempts``, ``vend_credentials``, ``managed_by`` (of new tables), ``storage.*``.
    """

    _kind: ClassVar[str] = "glue"

    def __init__(self, **properties: str) -> None:
        """Parse the properties; nothing is opened.

        Raises:
            InvalidInputError: (13) a property is misspelled or invalid, or half of a pair is missing.
        """
        values = glue_properties(properties)
        super().__init__(GlueMetastore(GlueSettings.parse(values)), StorageConfig.parse(values), properties)
