"""A table on S3 in a Hive Metastore, which creates folders there with its own file system."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.embedded import MetastoreServer
from tests.conformance.codes import refused_with
from tests.servers.glue_double import GlueDouble
from tests.servers.releases import hms_2_with_s3
from tests.support.lakes import Lake, bucket_of

pytestmark = pytest.mark.thorough


def lake_on_s3(server: MetastoreServer, s3: GlueDouble, database: str) -> Lake:
    keys = {f"storage.{key}": value for key, value in s3.storage.items()}
    properties = {"uri": server.uri, "root": bucket_of(s3, database), **keys}
    return Lake("Hive2Namespace", properties, s3.storage)


@pytest.fixture
def with_s3(glue: GlueDouble, tmp_path: Path) -> Iterator[MetastoreServer]:
    """A metastore that is configured for S3."""
    settings = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": glue.endpoint,
        "fs.s3a.endpoint.region": glue.storage["aws_region"],
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": glue.storage["aws_access_key_id"],
        "fs.s3a.secret.key": glue.storage["aws_secret_access_key"],
    }
    with MetastoreServer(hms_2_with_s3(), tmp_path / "metastore", settings=settings) as server:
        yield server


def test_a_managed_table_can_be_on_s3_if_the_metastore_supports_it(
    with_s3: MetastoreServer, glue: GlueDouble, database: str
) -> None:
    table = lake_on_s3(with_s3, glue, database).declare(database)
    assert table.location.startswith("s3://")
    assert [table.append(row) for row in (1, 2)] == [1, 2]
    assert table.rows() == table.rows_by_path() == [1, 2]
    assert (table.version, table.finals, table.recorded) == (2, [1, 2], [])


def test_a_metastore_without_s3_support_is_reported(
    metastore: MetastoreServer, glue: GlueDouble, database: str
) -> None:
    lake = lake_on_s3(metastore, glue, database)
    with lake.connect() as namespace, refused_with(ErrorCode.INTERNAL, "No FileSystem for scheme", "s3"):
        namespace.create_namespace({"id": [database]})
