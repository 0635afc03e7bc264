"""The newest version at a location on S3: one listing, whatever the number of versions."""

import socket
import time
from collections.abc import Iterable

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ErrorCode
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from airflow_provider_lancens.namespace.storage.object_store import latest_version, manifest_names
from tests.conformance.codes import refused_with
from tests.servers.glue_double import GlueDouble

ROWS = pa.table({"x": [1]})
MORE_THAN_A_PAGE = 1_200


@pytest.fixture
def bucket(glue: GlueDouble, database: str) -> str:
    name = database.replace("_", "-")
    glue.client("s3").create_bucket(Bucket=name)
    return name


def put(bucket: str, names: Iterable[str]) -> str:
    """Put empty files in a ``_versions`` folder into the server's memory, and return the location."""
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for name in names:
        backend.put_object(bucket, f"t.lance/_versions/{name}", b"")
    return f"s3://{bucket}/t.lance"


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_the_newest_version_equals_the_one_that_lance_finds(
    glue: GlueDouble, bucket: str, scheme: str
) -> None:
    location = f"s3://{bucket}/a table.lance"
    for mode in ("create", "append", "append"):
        lance.write_dataset(ROWS, location, mode=mode, storage_options=glue.storage)
    spelled = location.replace("s3", scheme, 1)
    assert latest_version(spelled, glue.storage) == 3


def test_an_empty_location_has_no_version(glue: GlueDouble, bucket: str) -> None:
    assert latest_version(f"s3://{bucket}/t.lance", glue.storage) is None


@pytest.mark.parametrize("scheme", [0, 1], ids=["V2", "V1"])
def test_versions_beyond_one_page_are_found(glue: GlueDouble, bucket: str, scheme: int) -> None:
    location = put(bucket, [manifest_names(version + 1)[scheme] for version in range(MORE_THAN_A_PAGE)])
    assert latest_version(location, glue.storage) == MORE_THAN_A_PAGE


def test_a_table_migrated_to_newer_manifest_names_is_read(glue: GlueDouble, bucket: str) -> None:
    older = [manifest_names(version)[1] for version in (1, 2, 10)]
    newer = [manifest_names(version)[0] for version in (11, 12)]
    assert latest_version(put(bucket, [*older, *newer, "d9.manifest"]), glue.storage) == 12


def test_lances_own_options_are_passed_on(glue: GlueDouble, bucket: str) -> None:
    location = put(bucket, manifest_names(4))
    options = {**glue.storage, "new_table_enable_stable_row_ids": "true", "expires_at_millis": "1"}
    assert latest_version(location, options) == 4


def test_a_missing_bucket_is_an_error_instead_of_an_empty_table(glue: GlueDouble, bucket: str) -> None:
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, "no-such-bucket"):
        latest_version(f"s3://{bucket}-no-such-bucket/t.lance", glue.storage)


def test_an_unreachable_store_is_reported_quickly(glue: GlueDouble, bucket: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = f"http://127.0.0.1:{server.getsockname()[1]}"
    started = time.monotonic()
    with refused_with(ErrorCode.SERVICE_UNAVAILABLE, f"s3://{bucket}/t.lance"):
        latest_version(f"s3://{bucket}/t.lance", {**glue.storage, "aws_endpoint": silent})
    assert time.monotonic() - started < 10
