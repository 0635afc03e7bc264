"""The Airflow connections of the example DAGs."""

import json
from pathlib import Path
from typing import Any

from airflow_provider_lancens.embedded import MetastoreServer
from tests.servers.glue_double import REGION, GlueDouble

ROLE = "arn:aws:iam::123456789012:role/lake"
BUCKET = "lake"


def connections_of(metastore: MetastoreServer, glue: GlueDouble, root: Path) -> dict[str, str]:
    """The connections that the examples use, as environment variables of Airflow."""
    services = {name: {"endpoint_url": glue.endpoint} for name in ("s3", "sts")}
    keys = {"login": glue.properties["access_key_id"], "password": glue.properties["secret_access_key"]}
    role = {"role_arn": ROLE, "region_name": REGION, "service_config": services}
    on_glue = {"aws_conn_id": "aws", "root": f"s3://{BUCKET}", "storage.allow_http": "true"}
    given: dict[str, dict[str, Any]] = {
        "LAKE": {"conn_type": "lance_hive2", "host": metastore.uri, "extra": {"root": str(root)}},
        "AWS": {"conn_type": "aws", **keys, "extra": role},
        "LAKE_ON_GLUE": {"conn_type": "lance_glue", "extra": on_glue},
    }
    given["LANCE_FLIGHTS"] = given["LAKE"]
    return {f"AIRFLOW_CONN_{name}": json.dumps(fields) for name, fields in given.items()}
