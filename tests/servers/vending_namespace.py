"""A namespace of tables on the S3 double, which vends credentials that expire."""

import json
import urllib.request
from typing import Any

from lance_namespace import LanceNamespace
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.spark import NamespaceSpec
from tests.servers.s3_double import S3Double
from tests.servers.s3_handler import CREDENTIALS


class VendingNamespace(LanceNamespace):
    """Knows every table, at ``s3://<bucket>/<name>.lance``; its properties are Lance's storage options."""

    def __init__(self, bucket: str, **storage: str) -> None:
        self._bucket, self._storage = bucket, storage

    def namespace_id(self) -> str:
        return f"vending:{self._bucket}"

    def describe_table(self, request: Any) -> models.DescribeTableResponse:
        with urllib.request.urlopen(self._storage["aws_endpoint"] + CREDENTIALS) as answer:
            vended = json.load(answer)
        return models.DescribeTableResponse(
            location=f"s3://{self._bucket}/{request.id[-1]}.lance",
            storage_options={**self._storage, **vended},
        )


def vending(s3: S3Double) -> NamespaceSpec:
    """How to connect to it, from any process."""
    name = f"{VendingNamespace.__module__}.{VendingNamespace.__name__}"
    return NamespaceSpec(name, {"bucket": s3.bucket_name, **s3.endpoint})
