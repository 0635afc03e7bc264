"""Tables in Glue and on S3, used by pylance and LanceDB."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace import GlueNamespace
from airflow_provider_lancens.namespace.storage.object_store import latest_version
from tests.servers.glue_double import GlueDouble

THREADS = 8
ROWS = pa.table({"x": [1, 2, 3]})

COUNT = """
import pickle, sys
import lance
namespace, table = pickle.load(sys.stdin.buffer)
print(lance.dataset(namespace_client=namespace, table_id=table).count_rows())
"""


@pytest.fixture
def bucket(glue: GlueDouble, database: str) -> str:
    """A unique S3 bucket."""
    name = database.replace("_", "-")
    glue.client("s3").create_bucket(Bucket=name)
    return name


@pytest.fixture
def lake(
    glue: GlueDouble, bucket: str, connect_glue: Callable[..., GlueNamespace]
) -> Iterator[GlueNamespace]:
    """A namespace with its root on S3."""
    storage = {f"storage.{key}": value for key, value in glue.storage.items()}
    with connect_glue(root=f"s3://{bucket}/lake", **storage) as connected:
        yield connected


@pytest.fixture
def table(lake: GlueNamespace, database: str) -> list[str]:
    """The id of an undeclared table in an existing database."""
    lake.create_namespace({"id": [database]})
    return [database, "clicks"]


def keys(glue: GlueDouble, bucket: str) -> list[str]:
    answer: dict[str, Any] = glue.client("s3").list_objects_v2(Bucket=bucket)
    return [entry["Key"] for entry in answer.get("Contents", ())]


def write(lake: GlueNamespace, table: list[str], mode: str = "create") -> Any:
    return lance.write_dataset(ROWS, namespace_client=lake, table_id=table, mode=mode)


def test_a_table_is_written_appended_to_and_read_by_its_name(
    lake: GlueNamespace, table: list[str], bucket: str
) -> None:
    write(lake, table)
    write(lake, table, "append")
    opened = lance.dataset(namespace_client=lake, table_id=table)
    assert opened.count_rows() == 6
    described = lake.describe_table({"id": table})
    assert described.location.startswith(f"s3://{bucket}/lake/{table[0]}.db-lance/clicks-")
    assert described.location.endswith("/clicks.lance")
    assert latest_version(described.location, described.storage_options) == opened.version == 2


@pytest.mark.parametrize("name", ["two words", "é", "a-b.c", "表"])
def test_a_name_that_hive_does_not_allow_is_a_valid_path(
    lake: GlueNamespace, table: list[str], name: str
) -> None:
    write(lake, [table[0], name])
    described = lake.describe_table({"id": [table[0], name], "check_declared": True})
    assert described.is_only_declared is False
    assert lance.dataset(namespace_client=lake, table_id=[table[0], name]).count_rows() == 3


def test_credentials_are_returned_only_where_configured(
    glue: GlueDouble, connect_glue: Callable[..., GlueNamespace], lake: GlueNamespace, table: list[str]
) -> None:
    lake.declare_table({"id": table})
    assert lake.describe_table({"id": table}).storage_options == glue.storage
    assert lake.describe_table({"id": table, "vend_credentials": False}).storage_options is None
    with connect_glue(**{"storage.aws_secret_access_key": "x"}, vend_credentials="false") as silent:
        assert silent.describe_table({"id": table}).storage_options is None


def test_threads_share_a_namespace(lake: GlueNamespace, table: list[str]) -> None:
    write(lake, table)

    def work(number: int) -> int:
        mine = [table[0], f"t{number}"]
        write(lake, mine)
        write(lake, table, "append")
        return int(lance.dataset(namespace_client=lake, table_id=mine).count_rows())

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == [3] * THREADS
    assert lance.dataset(namespace_client=lake, table_id=table).count_rows() == 3 * (1 + THREADS)
    assert len(lake.list_tables({"id": table[:1]}).tables) == 1 + THREADS


def test_a_namespace_works_in_another_process_after_use(lake: GlueNamespace, table: list[str]) -> None:
    write(lake, table)
    done = subprocess.run(
        [sys.executable, "-c", COUNT], input=pickle.dumps((lake, table)), capture_output=True, check=True
    )
    assert done.stdout.split() == [b"3"]


def test_dropping_a_table_keeps_foreign_files(
    glue: GlueDouble, lake: GlueNamespace, table: list[str], bucket: str
) -> None:
    write(lake, table)
    others = ("data/nested.lance/data/1.lance", "data/notes.txt", "notes.txt")
    folder = lake.describe_table({"id": table}).location.removeprefix(f"s3://{bucket}/")
    mine = [f"{folder}/{name}" for name in others]
    for key in mine:
        glue.client("s3").put_object(Bucket=bucket, Key=key, Body=b"mine")
    assert len(keys(glue, bucket)) > len(mine)
    lake.drop_table({"id": table})
    assert keys(glue, bucket) == mine
    assert lake.list_tables({"id": table[:1]}).tables == []


def test_a_deregistered_table_is_registered_again_with_its_data(
    glue: GlueDouble, lake: GlueNamespace, table: list[str], bucket: str
) -> None:
    write(lake, table)
    before = keys(glue, bucket)
    location = lake.deregister_table({"id": table}).location
    lake.drop_namespace({"id": table[:1]})
    assert keys(glue, bucket) == before
    lake.create_namespace({"id": table[:1]})
    lake.register_table({"id": [table[0], "again"], "location": location})
    assert lance.dataset(namespace_client=lake, table_id=[table[0], "again"]).count_rows() == 3


def test_lancedb_creates_opens_lists_and_drops(
    glue: GlueDouble, bucket: str, database: str, lake: GlueNamespace, table: list[str]
) -> None:
    storage = {f"storage.{key}": value for key, value in glue.storage.items()}
    properties = {**glue.properties, **storage, "root": f"s3://{bucket}/lake"}
    db = lancedb.connect_namespace("airflow_provider_lancens.namespace.GlueNamespace", properties)
    db.create_table("clicks", ROWS, namespace_path=[database], storage_options=glue.storage)
    assert db.open_table("clicks", namespace_path=[database]).count_rows() == 3
    assert db.list_tables(namespace_path=[database]).tables == ["clicks"]
    db.drop_table("clicks", namespace_path=[database])
    assert lake.list_tables({"id": [database]}).tables == []
