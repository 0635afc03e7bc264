"""Provider metadata for Airflow: the provider's name, its connection types, links and assets.

A literal that imports nothing, because every Airflow process reads it at start. It is the only source
of the connection forms: the UI of Airflow 3.2 and newer reads them from here, the UI of 3.1 through
the hooks, which read it back (`hooks.connection_fields`), and the hooks check a connection's
extras against the same fields. A further connection type is one entry in
`_CONNECTION_TYPES`.
"""

from __future__ import annotations

from typing import Any

DEFAULT_CONNECTION = "lance_default"
"""The connection of operators, sensors, hooks and assets that are given none."""

_TEXT = {"type": ["string", "null"]}
_SECRET = {"type": ["string", "null"], "format": "password"}
_SECONDS = {"type": ["number", "null"], "minimum": 0.001}
_FLAG = {"type": ["string", "null"], "enum": ["true", "false"]}
_COUNT = {"type": ["integer", "null"], "minimum": 1}

_LAYOUT_FIELDS = {
    "root": {
        "label": "Root",
        "description": "Absolute path or URI, such as s3://bucket/prefix, below which namespaces without a "
        "location are created. Relative paths are not allowed.",
        "schema": _TEXT,
    },
    "allowed_locations": {
        "label": "Allowed locations",
        "description": "Absolute paths or URIs, separated by commas, below which tables may be, besides the "
        "root; * is anywhere. No others are read or changed. Default: the buckets of the root and of a "
        "table's database, if one of them is in an object store.",
        "schema": _TEXT,
    },
    "managed_by": {
        "label": "Version authority",
        "description": "Authority for versions of new tables: storage, or impl for the metastore, which must "
        "support compare-and-set. Default: storage.",
        "schema": {"type": ["string", "null"], "enum": ["storage", "impl"]},
    },
}

_ASSET_FIELDS = {
    "asset_authority": {
        "label": "Asset authority",
        "description": "First part of the URIs of the tables' assets, lance://<asset authority>/<database>/"
        "<table>. Set the same one in all connections to this metastore, so that a table has one asset. "
        "Default: the id of the connection.",
        "schema": _TEXT,
    },
}

_REFERENCE_TO_HIVE = {
    "hive_metastore_conn_id": {
        "label": "Hive Metastore connection",
        "description": "ID of a connection of type hive_metastore that specifies the servers. Leave empty "
        "if hosts are set above.",
        "schema": _TEXT,
    },
}

_HIVE_CLIENT_FIELDS = {
    "client.pool-size": {
        "label": "Pool size",
        "description": "Maximum number of connections to the metastore per process. Default: 3.",
        "schema": _COUNT,
    },
    "client.connect-timeout": {
        "label": "Connect timeout",
        "description": "Seconds to wait for a connection, in total for all hosts. Default: 8.",
        "schema": _SECONDS,
    },
    "client.read-timeout": {
        "label": "Read timeout",
        "description": "Seconds to wait for each response. Default: 60.",
        "schema": _SECONDS,
    },
    "client.table-filter": {
        "label": "Server-side table filter",
        "description": "Whether the server filters listings for Lance tables. Set to false for servers that "
        "cannot, which is slower. Default: true.",
        "schema": _FLAG,
    },
}

_AUTHENTICATION_FIELDS = {
    "client.auth": {
        "label": "Authentication",
        "description": "none, kerberos with the ticket of the calling process, or plain with the user and "
        "password above. Default: none.",
        "schema": {"type": ["string", "null"], "enum": ["none", "kerberos", "plain"]},
    },
    "client.kerberos.service-name": {
        "label": "Kerberos service name",
        "description": "First part of the metastore's Kerberos principal. Default: hive.",
        "schema": _TEXT,
    },
    "client.kerberos.protection": {
        "label": "Kerberos protection",
        "description": "Least protection of the traffic by Kerberos: auth-conf encrypts it, auth-int detects "
        "changes, auth only authenticates. Default: auth-conf, or auth with TLS.",
        "schema": {"type": ["string", "null"], "enum": ["auth-conf", "auth-int", "auth"]},
    },
    "client.plain.without-tls": {
        "label": "Password without TLS",
        "description": "Whether plain authentication may send the password unencrypted. Default: false.",
        "schema": _FLAG,
    },
    "client.tls": {
        "label": "TLS",
        "description": "Whether to connect to the metastore with TLS. Default: false.",
        "schema": _FLAG,
    },
    "client.tls.ca-file": {
        "label": "TLS CA file",
        "description": "PEM file on each worker, triggerer and API server with the trusted certificate "
        "authorities. Default: the authorities of the system.",
        "schema": _TEXT,
    },
    "client.tls.cert-file": {
        "label": "TLS certificate file",
        "description": "PEM file on each worker, triggerer and API server with the client certificate, if "
        "the server requires one.",
        "schema": _TEXT,
    },
    "client.tls.key-file": {
        "label": "TLS key file",
        "description": "PEM file on each worker, triggerer and API server with the private key, if the "
        "certificate file does not contain it.",
        "schema": _TEXT,
    },
    "client.tls.verify-hostname": {
        "label": "Verify TLS host name",
        "description": "Whether the server's certificate must match its host name. Default: true.",
        "schema": _FLAG,
    },
}

_CATALOG_FIELDS = {
    "aws_conn_id": {
        "label": "AWS connection",
        "description": "ID of a connection of type aws whose credentials and role are used, also for the "
        "storage. Leave empty to use the access key above, or the default credential chain of the AWS SDK.",
        "schema": _TEXT,
    },
    "session_token": {
        "label": "Session token",
        "description": "Only with temporary keys, which are not renewed; the keys of an AWS connection are.",
        "schema": _SECRET,
    },
    "region": {
        "label": "Region",
        "description": "Region of the catalog, such as eu-west-1. Default: the region of the AWS connection "
        "or the AWS SDK.",
        "schema": _TEXT,
    },
    "catalog_id": {
        "label": "Catalog",
        "description": "ID of the Data Catalog, an AWS account ID. Default: the catalog of the account in "
        "use.",
        "schema": _TEXT,
    },
    "endpoint": {
        "label": "Endpoint",
        "description": "URL of the Glue service, such as https://vpce-….amazonaws.com. Default: the AWS "
        "endpoint of the region.",
        "schema": _TEXT,
    },
}

_GLUE_CLIENT_FIELDS = {
    "client.connect-timeout": {
        "label": "Connect timeout",
        "description": "Seconds to wait for a connection in each attempt. Default: 2.",
        "schema": _SECONDS,
    },
    "client.read-timeout": {
        "label": "Read timeout",
        "description": "Seconds to wait for a response in each attempt. Default: 30.",
        "schema": _SECONDS,
    },
    "client.max-attempts": {
        "label": "Attempts",
        "description": "Maximum number of attempts per request, with backoff if AWS throttles. Default: 4.",
        "schema": _COUNT,
    },
}

_STORAGE_FIELDS = {
    "storage.region": {
        "label": "Storage region",
        "description": "Region of the object store of the tables. Set other Lance storage options as extras "
        "named storage.<option>.",
        "schema": _TEXT,
    },
    "storage.endpoint": {
        "label": "Storage endpoint",
        "description": "URL of an S3-compatible object store. Leave empty for AWS.",
        "schema": _TEXT,
    },
    "storage.access_key_id": {
        "label": "Storage access key",
        "description": "Leave empty if the workers have credentials of their own.",
        "schema": _TEXT,
    },
    "storage.secret_access_key": {
        "label": "Storage secret key",
        "description": "Secret of the access key; masked in the UI and in logs.",
        "schema": _SECRET,
    },
}

_HIVE_FIELDS = {
    **_REFERENCE_TO_HIVE,
    **_LAYOUT_FIELDS,
    **_ASSET_FIELDS,
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
        "login": "only for plain authentication",
        "password": "only for plain authentication",
    },
}

_ANY_CATALOG_FIELDS = {
    "impl": {
        "label": "Implementation",
        "description": "dir for tables in a folder or a bucket, rest for a REST service, or the dotted path "
        "of a class of lance_namespace, such as lance_namespace_impls.unity.UnityNamespace. Default: dir.",
        "schema": _TEXT,
    },
    "root": {
        "label": "Root",
        "description": "Absolute path or URI, such as s3://bucket/lake, of the folder of the tables. "
        "Required for dir.",
        "schema": _TEXT,
    },
    "properties": {
        "label": "Properties",
        "description": "Further properties of the implementation as a JSON object of text, such as "
        '{"headers.x-tenant": "sales"}.',
        "schema": _TEXT,
    },
    "secret_properties": {
        "label": "Secret properties",
        "description": "The same for properties that are secret; masked in the UI and in logs.",
        "schema": _SECRET,
    },
    "client.timeout": {
        "label": "Timeout",
        "description": "Seconds that one request to the catalog may take. Default: 60.",
        "schema": _SECONDS,
    },
    "allowed_locations": {
        "label": "Allowed locations",
        "description": "Absolute paths or URIs, separated by commas, below which tables may be, besides the "
        "root; * is anywhere. No others are read or changed. Default: the bucket of the root, if it is in an "
        "object store; else anywhere.",
        "schema": _TEXT,
    },
}

_CONNECTION_TYPES = [
    {
        "connection-type": "lance_hive2",
        "hook-name": "Lance (Hive Metastore 2.x)",
        "hook-class-name": "airflow_provider_lancens.hooks.sql.LanceHive2SqlHook",
        "ui-field-behaviour": _HIVE_BEHAVIOR,
        "conn-fields": _HIVE_FIELDS,
    },
    {
        "connection-type": "lance_hive3",
        "hook-name": "Lance (Hive Metastore 3.x, 4.x)",
        "hook-class-name": "airflow_provider_lancens.hooks.sql.LanceHive3SqlHook",
        "ui-field-behaviour": _HIVE_BEHAVIOR,
        "conn-fields": _HIVE_FIELDS,
    },
    {
        "connection-type": "lance_glue",
        "hook-name": "Lance (AWS Glue)",
        "hook-class-name": "airflow_provider_lancens.hooks.sql.LanceGlueSqlHook",
        "ui-field-behaviour": {
            "hidden-fields": ["host", "port", "schema"],
            "relabeling": {"login": "Access key ID", "password": "Secret access key"},
            "placeholders": {
                "login": "leave empty with an AWS connection",
                "password": "leave empty with an AWS connection",
            },
        },
        "conn-fields": {
            **_CATALOG_FIELDS,
            **_LAYOUT_FIELDS,
            **_ASSET_FIELDS,
            **_GLUE_CLIENT_FIELDS,
            **_STORAGE_FIELDS,
        },
    },
    {
        "connection-type": "lance",
        "hook-name": "Lance (folder, REST or another catalog)",
        "hook-class-name": "airflow_provider_lancens.hooks.sql.LanceCatalogSqlHook",
        "ui-field-behaviour": {
            "hidden-fields": ["port", "login", "schema"],
            "relabeling": {"host": "Service URI", "password": "Token"},
            "placeholders": {
                "host": "https://catalog:8443, only for rest or a class",
                "password": "only for rest: sent as Authorization: Bearer",
            },
        },
        "conn-fields": {**_ANY_CATALOG_FIELDS, **_ASSET_FIELDS, **_STORAGE_FIELDS},
    },
]

_LINEAGE_CONVERTER = "airflow_provider_lancens.assets.lineage.convert_asset_to_openlineage"

_CONFIG = {
    "lancens": {
        "description": "Options of the provider for Lance tables.",
        "options": {
            "allowed_storage_options": {
                "description": "Storage options that connections may have although they name a file, a "
                "command, an authority or a source of credentials, or are unknown to the provider; separated "
                "by commas. Whoever may edit connections chooses their values, and the worker, the triggerer "
                "and the API server act on them with their own permissions.\n",
                "version_added": "0.1.0",
                "type": "string",
                "example": "azure_federated_token_file, proxy_url",
                "default": "",
            },
            "show_sample_rows": {
                "description": "Whether the Lance page of the UI shows some rows of each table to all users "
                "who may read assets.\n",
                "version_added": "0.1.0",
                "type": "boolean",
                "example": "True",
                "default": "False",
            },
        },
    },
}

_EXTRA_LINKS = [
    "airflow_provider_lancens.links.LancePageLink",
    "airflow_provider_lancens.links.LanceGlueTableLink",
    "airflow_provider_lancens.links.LanceGlueDatabaseLink",
    "airflow_provider_lancens.links.LanceS3Link",
]


def get_provider_info() -> dict[str, Any]:
    """Describe the provider, as Airflow's entry point ``apache_airflow_provider`` asks.

    Returns:
        A document that fulfills both ``provider_info.schema.json`` and ``provider.yaml.schema.json``.
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
        "task-decorators": [
            {
                "name": "lance_spark",
                "class-name": "airflow_provider_lancens.operators.decorator.lance_spark_task",
            }
        ],
        "config": _CONFIG,
    }
