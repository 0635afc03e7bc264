"""Direct ingestion of files: the rows are those that pyarrow reads."""

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableSchemaValidationError,
)
from pyspark import TaskContext
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from airflow_provider_lancens.spark.write.files import file_writer
from airflow_provider_lancens.spark.write.files.file_plan import FileUnit, plan
from tests.servers.glue_double import GlueDouble
from tests.support.spark_sessions import ATTEMPTS_OF_A_TASK
from tests.support.writes import write_files

pytestmark = pytest.mark.thorough

Ids = Callable[..., list[int]]

ROWS = pa.table(
    {
        "id": range(100),
        "name": [None if i % 7 == 0 else "" if i % 7 == 1 else f"näme {i}" for i in range(100)],
        "price": pa.array([Decimal(i) / 4 for i in range(100)], pa.decimal128(10, 2)),
        "at": pa.array([i * 10**6 for i in range(100)], pa.timestamp("us", "UTC")),
    }
)
NESTED = ROWS.append_column("v", pa.array([[i / 2, None] for i in range(100)], pa.list_(pa.float32())))
TYPES = {"id": "int64", "name": "string", "price": "decimal(10, 2)", "at": "timestamp[us, UTC]"}


def as_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=15)


def as_arrow(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=15)


def as_csv(table: pa.Table, path: Path) -> None:
    pa.csv.write_csv(table, path)


def as_json(table: pa.Table, path: Path) -> None:
    path.write_text("\n".join(json.dumps(row, default=str) for row in table.to_pylist()))


class FailingReader(file_writer.FileReader):
    """Returns all its rows and then fails, in the first attempts of a task."""

    def read(self, units: Sequence[FileUnit], fit: file_writer.Fit) -> Iterator[pa.RecordBatch]:
        yield from file_writer.FileReader.read(self, units, fit)
        context = TaskContext.get()
        if context is not None and context.attemptNumber() < ATTEMPTS_OF_A_TASK - 1:
            raise RuntimeError("this attempt fails")


def stored(spec: NamespaceSpec, table: str) -> lance.LanceDataset:
    return lance.dataset(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)


@pytest.mark.parametrize(
    ("kind", "write", "wanted", "schema"),
    [
        ("parquet", as_parquet, NESTED, None),
        ("arrow", as_arrow, NESTED, None),
        ("csv", as_csv, ROWS, TYPES),
        ("json", as_json, NESTED, {**TYPES, "v": "list<float>"}),
    ],
)
def test_every_format_is_ingested_as_pyarrow_reads_it(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    tmp_path: Path,
    kind: Any,
    write: Callable[[pa.Table, Path], None],
    wanted: pa.Table,
    schema: dict[str, str] | None,
) -> None:
    (tmp_path / "in").mkdir()
    write(wanted.slice(0, 60), tmp_path / "in/a")
    write(wanted.slice(60), tmp_path / "in/b")

    result = write_files(spark, FileSource(kind, str(tmp_path / "in"), schema=schema), spec, table)

    assert (result.version, result.written, result.files) == (1, 100, 2)
    assert stored(spec, table).to_table().equals(wanted)


def test_columns_filter_renames_and_casts_are_applied(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    as_parquet(NESTED, tmp_path / "a")
    source = FileSource(
        "parquet",
        str(tmp_path / "a"),
        columns=["price", "v", "id"],
        filter="at >= '1970-01-01T00:00:50Z' AND name IS NOT NULL",
        renames={"id": "number"},
        casts={"price": "double", "id": "int8"},
    )

    write_files(spark, source, spec, table, options=TableLayout(vector_columns={"v": 2}))

    kept = [i for i in range(50, 100) if i % 7]
    expected = pa.table(
        {
            "price": [i / 4 for i in kept],
            "v": pa.array([[i / 2, None] for i in kept], pa.list_(pa.float32(), 2)),
            "number": pa.array(kept, pa.int8()),
        }
    )
    assert stored(spec, table).to_table().equals(expected)


def test_files_are_upserted_on_keys(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,a\n2,b\n")
    (tmp_path / "b.csv").write_text("id,name\n2,B\n3,C\n")
    write_files(spark, FileSource("csv", f"{tmp_path}/a.csv"), spec, table)

    write_files(spark, FileSource("csv", f"{tmp_path}/b.csv"), spec, table, mode="upsert", on=["id"])

    file_writer = stored(spec, table).to_table().sort_by("id")
    assert file_writer.to_pydict() == {"id": [1, 2, 3], "name": ["a", "B", "C"]}


def test_a_later_try_reads_no_file(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    as_parquet(ROWS, tmp_path / "a")
    source = FileSource("parquet", str(tmp_path / "a"))
    write_files(spark, source, spec, table, key="january", execution_id="1")
    (tmp_path / "a").unlink()

    again = write_files(spark, source, spec, table, key="january", execution_id="1")

    assert (again.version, again.written, again.is_done) == (1, 100, False)


def test_files_that_do_not_fit_the_table_are_refused_before_anything_is_written(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    as_parquet(ROWS, tmp_path / "a")
    as_parquet(ROWS.select(["id"]), tmp_path / "b")
    write_files(spark, FileSource("parquet", str(tmp_path / "a")), spec, table)

    with pytest.raises(TableSchemaValidationError, match="name is missing in the rows"):
        write_files(spark, FileSource("parquet", str(tmp_path / "b")), spec, table)

    assert stored(spec, table).latest_version == 1


def test_files_without_rows_make_an_empty_table_and_then_commit_nothing(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    as_arrow(ROWS.slice(0, 0), tmp_path / "a")
    source = FileSource("arrow", str(tmp_path / "a"))

    first, second = (write_files(spark, source, spec, table) for _ in range(2))

    assert (first.version, first.written, second.version, second.is_done) == (1, 0, 1, False)
    assert stored(spec, table).schema == ROWS.schema


def test_a_failed_and_retried_task_duplicates_nothing(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(file_writer, "FileReader", FailingReader)
    as_parquet(ROWS, tmp_path / "a")

    result = write_files(spark, FileSource("parquet", str(tmp_path / "a")), spec, table)

    assert (result.version, result.written, result.files) == (1, 100, 2)
    assert ids() == list(range(100))


def test_a_value_that_can_not_be_cast_fails_with_its_file_and_column(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    as_parquet(ROWS.slice(90), tmp_path / "a")
    source = FileSource("parquet", str(tmp_path / "a"), casts={"name": "int64"})

    with pytest.raises(
        InvalidInputError, match=r"file .*/a: row 1, column name: .*: cannot convert string to int64"
    ):
        write_files(spark, source, spec, table)


def test_an_empty_file_list_is_refused_with_a_message(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match="no file found at"):
        write_files(spark, FileSource("parquet", f"{tmp_path}/*.parquet"), spec, table)


def test_compressed_text_is_read(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    for name, codec in (("a.csv.gz", "gzip"), ("b.csv.zst", "zstd")):
        with pa.CompressedOutputStream(str(tmp_path / name), codec) as file:
            pa.csv.write_csv(ROWS, file)

    write_files(spark, FileSource("csv", f"{tmp_path}/*.csv.*", schema=TYPES), spec, table)

    assert stored(spec, table).to_table().equals(pa.concat_tables([ROWS, ROWS]))


@pytest.mark.parametrize(("kind", "write"), [("parquet", as_parquet), ("arrow", as_arrow), ("csv", as_csv)])
def test_files_on_s3_are_read_with_the_storage_options(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    ids: Ids,
    tmp_path: Path,
    glue: GlueDouble,
    database: str,
    kind: Any,
    write: Callable[[pa.Table, Path], None],
) -> None:
    bucket = database.replace("_", "-")
    store = glue.client("s3")
    store.create_bucket(Bucket=bucket)
    write(ROWS, tmp_path / "a")
    store.upload_file(str(tmp_path / "a"), bucket, "in/a file")
    source = FileSource(kind, f"s3a://{bucket}/in/*", storage_options=glue.storage)

    assert write_files(spark, source, spec, table).written == 100
    assert ids() == list(range(100))


@pytest.mark.parametrize(("kind", "write"), [("parquet", as_parquet), ("csv", as_csv)])
def test_an_object_that_is_replaced_after_the_plan_is_refused(
    tmp_path: Path,
    glue: GlueDouble,
    database: str,
    kind: Any,
    write: Callable[[pa.Table, Path], None],
) -> None:
    bucket = database.replace("_", "-")
    store = glue.client("s3")
    store.create_bucket(Bucket=bucket)

    def land(rows: pa.Table) -> None:
        write(rows, tmp_path / "a")
        store.upload_file(str(tmp_path / "a"), bucket, "in/a")

    land(ROWS.slice(0, 50))
    planned = plan(FileSource(kind, f"s3://{bucket}/in"), glue.storage)
    reader = file_writer.FileReader(planned, glue.storage)
    assert sum(batch.num_rows for batch in reader.read(planned.units, iter)) == 50
    land(ROWS.slice(50))

    with pytest.raises(ConcurrentModificationError, match="in/a: it was changed after the write was planned"):
        list(reader.read(planned.units, iter))
