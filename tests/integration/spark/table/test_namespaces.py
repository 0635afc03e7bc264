"""Ingestion and reading with a real Hive Metastore, and on an object store with credentials."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import boto3
import lance
import pytest
from lance.fragment import write_fragments
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, DescribeTableRequest
from moto.server import ThreadedMotoServer
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.namespace.storage.write_leases import LEASES
from airflow_provider_lancens.spark import NamespaceSpec, WriteResult
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance import orphans
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.support.prepared_tables import ROWS
from tests.support.reads import read_table
from tests.support.writes import write_table

HIVE = "airflow_provider_lancens.namespace.Hive2Namespace"
SECRET = "not-to-be-shown"  # the double accepts any key


@pytest.fixture
def on_hive(metastore: MetastoreServer, tmp_path: Path) -> NamespaceSpec:
    return NamespaceSpec(HIVE, {"uri": metastore.uri, "root": str(tmp_path)})


@pytest.fixture
def on_s3() -> Iterator[NamespaceSpec]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {
            "aws_endpoint": f"http://{host}:{port}",
            "aws_region": "us-east-1",
            "aws_access_key_id": "reader",
            "aws_secret_access_key": SECRET,
            "allow_http": "true",
        }
        create_bucket("lake", options)
        storage = {f"storage.{key}": value for key, value in options.items()}
        # Lance's directory namespace, since the metastore from Spark's jars has no S3 file system.
        yield NamespaceSpec("dir", {"root": "s3://lake/tables", **storage})
    finally:
        server.stop()


def create_bucket(name: str, options: dict[str, str]) -> None:
    boto3.client(
        "s3",
        endpoint_url=options["aws_endpoint"],
        region_name=options["aws_region"],
        aws_access_key_id=options["aws_access_key_id"],
        aws_secret_access_key=options["aws_secret_access_key"],
    ).create_bucket(Bucket=name)


@pytest.fixture(params=["on_hive", "on_s3"])
def spec(request: pytest.FixtureRequest) -> NamespaceSpec:
    resolved_table: NamespaceSpec = request.getfixturevalue(request.param)
    return resolved_table


@pytest.fixture
def declare(spec: NamespaceSpec, database: str) -> Callable[..., str]:
    """Declare a table with these properties, and return its identifier."""

    def declare(**properties: str) -> str:
        namespace = spec.connect()
        namespace.create_namespace(CreateNamespaceRequest(id=[database]))
        namespace.declare_table(DeclareTableRequest(id=[database, "orders"], properties=properties))
        return f"{database}$orders"

    return declare


@pytest.mark.parametrize(
    ("spec", "properties"),
    [("on_hive", {}), ("on_hive", {"managed_by": "impl"}), ("on_s3", {})],
    ids=["hive", "hive-managed", "s3"],
    indirect=["spec"],
)
def test_rows_are_written_once_and_read_at_each_version(
    spark: SparkSession, spec: NamespaceSpec, declare: Callable[..., str], properties: dict[str, str]
) -> None:
    table = declare(**properties)
    january = spark.range(0, 10, 1, 2).selectExpr("id", "cast(id as decimal(10, 2)) AS amount")
    february = spark.range(10, 15).selectExpr("id", "cast(id as decimal(10, 2)) AS amount")

    results = [
        write_table(rows, spec, table, key=key, execution_id="1")
        for rows, key in ((january, "january"), (february, "february"), (january, "january"))
    ]

    assert [(r.table, r.version, r.written, r.is_done) for r in results] == [
        (table, 1, 10, True),
        (table, 2, 5, True),
        (table, 1, 10, False),
    ]
    counts = [read_table(spark, spec, table, version=version).count() for version in (1, 2)]
    assert counts == [10, 15]


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
@pytest.mark.parametrize("spec", ["on_hive"], indirect=True)
def test_rows_are_upserted_and_deleted_once(
    spark: SparkSession, spec: NamespaceSpec, declare: Callable[..., str], managed_by: str
) -> None:
    table = declare(managed_by=managed_by)

    def upsert(key: str, first: int, end: int) -> WriteResult:
        df = spark.range(first, end, 1, 2).selectExpr("id", f"'{key}' AS month")
        return write_table(df, spec, table, mode="upsert", on=["id"], key=key, execution_id="1")

    results = [upsert("jan", 0, 4), upsert("feb", 2, 6), upsert("jan", 0, 4)]
    deleted = [delete_rows(spec, table, "id = 5", key="mistake", execution_id="1") for _ in range(2)]

    assert [(result.version, result.is_done) for result in results] == [(1, True), (2, True), (1, False)]
    assert [(one.version, one.deleted, one.is_done) for one in deleted] == [(3, 1, True), (3, 1, False)]
    rows = read_table(spark, spec, table).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(0, "jan"), (1, "jan"), (2, "feb"), (3, "feb"), (4, "feb")]


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
@pytest.mark.parametrize("spec", ["on_hive"], indirect=True)
def test_lance_reads_the_table_through_the_metastore(
    spark: SparkSession, spec: NamespaceSpec, declare: Callable[..., str], managed_by: str
) -> None:
    table = declare(managed_by=managed_by)
    write_table(spark.range(15), spec, table)

    if managed_by == "impl":
        resolved_table = spec.connect().describe_table(DescribeTableRequest(id=table.split("$")))
        assert resolved_table.version == 1
    assert lance.dataset(namespace_client=spec.connect(), table_id=table.split("$")).count_rows() == 15


def test_no_secret_is_shown(on_s3: NamespaceSpec) -> None:
    assert SECRET not in repr(on_s3)
    assert SECRET not in str(on_s3)


def test_a_clean_up_removes_files_of_an_object_store(
    on_s3: NamespaceSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "SHORTEST", timedelta(0))
    monkeypatch.setattr(orphans, "_SLACK", timedelta(0))
    on_s3.connect().declare_table(DeclareTableRequest(id=["orders"]))
    with resolved_table(on_s3, "orders") as target:
        options = dict(target.dataset.storage_options)
        data = lance.write_dataset(ROWS, target.dataset.location, storage_options=options)
        files = TableFiles(target.dataset.location, target.dataset.storage_options)
        interrupted = [
            "_lancens/x/18446744073709551613.manifest",
            "_versions/18446744073709551613.manifest-x",
        ]
        for path in interrupted:
            files.put(path, b"")
        data_files = [write_fragments(ROWS, data, mode="append")[0].files[0].path for _ in range(2)]
        wait_for_the_next_second(files)

        planned = remove_orphans(on_s3, "orders", older_than=timedelta(0), dry_run=True)
        removed = remove_orphans(on_s3, "orders", older_than=timedelta(0))

        paths = tuple(sorted([*interrupted, *(f"data/{path}" for path in data_files)]))
        assert planned.paths == removed.paths == paths
        assert [path for path in paths if files.stat(path) is not None] == []
        assert target.open(1).to_table() == ROWS
        assert files.below(LEASES) == []


def wait_for_the_next_second(files: TableFiles) -> None:
    """Wait for the next second of the store's clock."""
    newest = max(file.modified for file in files.below("data"))
    while True:
        files.put("clock", b"")
        clock = files.stat("clock")
        if clock is not None and clock.modified > newest:
            return
