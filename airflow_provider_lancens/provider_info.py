"""The provider's card for Airflow: what it is called and which connection types it brings.

A literal that imports nothing, because every Airflow process reads it at start. It is the one source
of the connection forms: the UI of Airflow 3.2 and newer draws them from here alone, that of 3.1
through the hooks, which read it back (`airflow_provider_lancens.hooks.form`), and the hooks check a
connection's extras against the same fields. A further connection type is one entry in
`_CONNECTION_TYPES`.
"""

from __future__ import annotations

from typing import Any

_TEXT = {"type": ["string", "null"]}
_SECRET = {"type": ["string", "null"], "format": "password"}
_SECONDS = {"type": ["number", "null"], "minimum": 0.001}
_FLAG = {"type": ["string", "null"], "enum": ["true", "false"]}
_COUNT = {"type": ["integer", "null"], "minimum": 1}

_LAYOUT_FIELDS = {
    "root": {
        "label": "Root",
        "description": "Where namespaces lie that are created without a location: an absolute path or a "
        "URI such as s3://bucket/prefix. Not relative: each worker would read that differently.",
        "schema": _TEXT,
    },
}

_REFERENCE_TO_HIVE = {
    "hive_metastore_conn_id": {
        "label": "Hive Metastore connection",
        "description": "Id of a connection of type hive_metastore that names the servers, where no host is "
        "given above.",
        "schema": _TEXT,
    },
}

_HIVE_CLIENT_FIELDS = {
    "client.pool-size": {
        "label": "Pool size",
        "description": "Connections to the metastore that one process keeps; 3 where empty.",
        "schema": _COUNT,
    },
    "client.connect-timeout": {
        "label": "Connect timeout",
        "description": "Seconds to wait for a connection, shared between the hosts; 8 where empty.",
        "schema": _SECONDS,
    },
    "client.read-timeout": {
        "label": "Read timeout",
        "description": "Seconds to wait for each answer; 60 where empty.",
        "schema": _SECONDS,
    },
    "client.table-filter": {
        "label": "Filter on the server",
        "description": "Whether the server finds the Lance tables in a listing; false for one that can't, "
        "which is slower. True where empty.",
        "schema": _FLAG,
    },
}

_AUTHENTICATION_FIELDS = {
    "client.auth": {
        "label": "Authentication",
        "description": "kerberos: the worker's own ticket; plain: the user and the password above. "
        "None where empty.",
        "schema": {"type": ["string", "null"], "enum": ["none", "kerberos", "plain"]},
    },
    "client.kerberos.service-name": {
        "label": "Kerberos service name",
        "description": "First part of the metastore's principal; hive where empty.",
        "schema": _TEXT,
    },
    "client.tls": {
        "label": "TLS",
        "description": "Whether the metastore speaks TLS; false where empty.",
        "schema": _FLAG,
    },
    "client.tls.ca-file": {
        "label": "TLS authorities",
        "description": "PEM file, on each worker, of the authorities to trust; the machine's where empty.",
        "schema": _TEXT,
    },
    "client.tls.cert-file": {
        "label": "TLS certificate",
        "description": "PEM file, on each worker, of the certificate to show, where the server asks for one.",
        "schema": _TEXT,
    },
    "client.tls.key-file": {
        "label": "TLS key",
        "description": "PEM file, on each worker, of that certificate's key, where it isn't in that file.",
        "schema": _TEXT,
    },
    "client.tls.verify-hostname": {
        "label": "TLS names the host",
        "description": "Whether the server's certificate must name its host; true where empty.",
        "schema": _FLAG,
    },
}

_CATALOG_FIELDS = {
    "aws_conn_id": {
        "label": "AWS connection",
        "description": "Id of a connection of type aws whose credentials and role are used, for the storage "
        "too; where no access key is given above. Both empty: what the AWS SDK finds by itself.",
        "schema": _TEXT,
    },
    "session_token": {
        "label": "Session token",
        "description": "With temporary keys only; they are not renewed, an AWS connection's are.",
        "schema": _SECRET,
    },
    "region": {
        "label": "Region",
        "description": "Of the catalog, such as eu-west-1; the AWS connection's or the SDK's where empty.",
        "schema": _TEXT,
    },
    "catalog_id": {
        "label": "Catalog",
        "description": "Id of the Data Catalog, an account's number; the account's own where empty.",
        "schema": _TEXT,
    },
    "endpoint": {
        "label": "Endpoint",
        "description": "Another address, such as https://vpce-….amazonaws.com; AWS's of the region where "
        "empty.",
        "schema": _TEXT,
    },
}

_GLUE_CLIENT_FIELDS = {
    "client.connect-timeout": {
        "label": "Connect timeout",
        "description": "Seconds to wait for a connection, at each attempt; 2 where empty.",
        "schema": _SECONDS,
    },
    "client.read-timeout": {
        "label": "Read timeout",
        "description": "Seconds to wait for each answer, at each attempt; 30 where empty.",
        "schema": _SECONDS,
    },
    "client.max-attempts": {
        "label": "Attempts",
        "description": "How often a request is sent at most, more slowly where AWS throttles; 4 where empty.",
        "schema": _COUNT,
    },
}

_STORAGE_FIELDS = {
    "storage.region": {
        "label": "Storage region",
        "description": "Of the object store that holds the tables. Any other storage option of Lance goes "
        "into the extras as storage.<option>.",
        "schema": _TEXT,
    },
    "storage.endpoint": {
        "label": "Storage endpoint",
        "description": "Of an S3-compatible store; empty for AWS.",
        "schema": _TEXT,
    },
    "storage.access_key_id": {
        "label": "Storage access key",
        "description": "Empty where the workers have credentials of their own.",
        "schema": _TEXT,
    },
    "storage.secret_access_key": {
        "label": "Storage secret key",
        "description": "Belongs to the access key; masked in the UI and in logs.",
        "schema": _SECRET,
    },
}

_HIVE_FIELDS = {
    **_REFERENCE_TO_HIVE,
    **_LAYOUT_FIELDS,
    **_HIVE_CLIENT_FIELDS,
    **_AUTHENTICATION_FIELDS,
    **_STORAGE_FIELDS,
}

_HIVE_BEHAVIOR = {
    "hidden-fields": ["schema"],
    "relabeling": {"host": "Metastore hosts", "login": "User"},
    "placeholders": {
        "host": "metastore-1,metastore-2 or thrift://metastore:9083",
        "port": "9083",
        "login": "with plain authentication",
        "password": "with plain authentication",
    },
}

_CONNECTION_TYPES = [
    {
        "connection-type": "lance_hive2",
        "hook-name": "Lance (Hive Metastore 2.x)",
        "hook-class-name": "airflow_provider_lancens.hooks.hive.LanceHive2Hook",
        "ui-field-behaviour": _HIVE_BEHAVIOR,
        "conn-fields": _HIVE_FIELDS,
    },
    {
        "connection-type": "lance_hive3",
        "hook-name": "Lance (Hive Metastore 3.x, 4.x)",
        "hook-class-name": "airflow_provider_lancens.hooks.hive.LanceHive3Hook",
        "ui-field-behaviour": _HIVE_BEHAVIOR,
        "conn-fields": _HIVE_FIELDS,
    },
    {
        "connection-type": "lance_glue",
        "hook-name": "Lance (AWS Glue)",
        "hook-class-name": "airflow_provider_lancens.hooks.glue.LanceGlueHook",
        "ui-field-behaviour": {
            "hidden-fields": ["host", "port", "schema"],
            "relabeling": {"login": "Access key id", "password": "Secret access key"},
            "placeholders": {
                "login": "empty with an AWS connection",
                "password": "empty with an AWS connection",
            },
        },
        "conn-fields": {**_CATALOG_FIELDS, **_LAYOUT_FIELDS, **_GLUE_CLIENT_FIELDS, **_STORAGE_FIELDS},
    },
]

_LINEAGE_CONVERTER = "airflow_provider_lancens.assets.lineage.convert_asset_to_openlineage"

_EXTRA_LINKS = [
    "airflow_provider_lancens.links.LanceGlueTableLink",
    "airflow_provider_lancens.links.LanceGlueDatabaseLink",
    "airflow_provider_lancens.links.LanceS3Link",
]


def get_provider_info() -> dict[str, Any]:
    """Describe the provider, as Airflow's entry point ``apache_airflow_provider`` asks.

    Returns:
        A document that fulfils both ``provider_info.schema.json`` and ``provider.yaml.schema.json``.
    """
    return {
        "package-name": "airflow-provider-lancens",
        "name": "Lance",
        "description": "Lance tables registered in Hive Metastore and AWS Glue, ingested with PySpark.",
        "state": "ready",
        "versions": ["0.1.0"],
        "source-date-epoch": 0,
        "connection-types": _CONNECTION_TYPES,
        "asset-uris": [
            {
                "schemes": ["lance"],
                "handler": "airflow_provider_lancens.assets.table.sanitize_uri",
                "factory": "airflow_provider_lancens.assets.table.create_asset",
                "to_openlineage_converter": _LINEAGE_CONVERTER,
            }
        ],
        "extra-links": _EXTRA_LINKS,
    }
