from collections.abc import Callable, Iterator

import lance
import pyarrow as pa
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
)
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, TableLayout
from tests.support.reads import read_table
from tests.support.writes import write_table

Ids = Callable[..., list[int]]


def dataset(spec: NamespaceSpec, table: str) -> lance.LanceDataset:
    return lance.dataset(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)


def test_partitions_are_written_as_one_version(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    result = write_table(spark.range(0, 100, 1, 4), spec, table)

    assert (result.table, result.version, result.previous_version) == (table, 1, None)
    assert (result.written, result.files, result.is_done) == (100, 4, True)
    assert result.bytes > 0
    assert ids() == list(range(100))


def test_appends_and_overwrites_advance_the_version(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    write_table(spark.range(3), spec, table, mode="create")
    write_table(spark.range(3, 5), spec, table)
    result = write_table(spark.range(9, 10), spec, table, mode="overwrite")

    assert (result.version, result.previous_version) == (3, 2)
    assert [ids(version) for version in (1, 2, 3)] == [[0, 1, 2], [0, 1, 2, 3, 4], [9]]


def test_the_same_key_needs_no_spark_work_the_second_time(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    computed = spark.sparkContext.accumulator(0)

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            computed.add(batch.num_rows)
            yield batch

    df = spark.range(10).mapInArrow(count, "id long")
    first, again = (write_table(df, spec, table, key="january", execution_id="1") for _ in range(2))

    assert computed.value == 10
    assert (first.is_done, again.is_done) == (True, False)
    assert (again.version, again.written, again.files, again.bytes) == (1, 10, first.files, first.bytes)
    assert ids() == list(range(10))


def test_an_append_of_no_rows_commits_nothing(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    write_table(spark.range(3), spec, table)
    result = write_table(spark.range(0), spec, table)

    assert (result.version, result.written, result.is_done) == (1, 0, False)
    assert dataset(spec, table).latest_version == 1


def test_a_first_write_of_no_rows_makes_an_empty_table(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    result = write_table(spark.range(0), spec, table)

    assert (result.version, result.written, result.is_done) == (1, 0, True)
    assert ids() == []
    assert write_table(spark.range(2), spec, table).version == 2


def test_an_overwrite_with_no_rows_empties_the_table(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    write_table(spark.range(3), spec, table)
    write_table(spark.range(0), spec, table, mode="overwrite")

    assert ids() == []


def test_empty_partitions_write_no_file(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    result = write_table(spark.range(0, 100, 1, 4).where("id < 10"), spec, table)

    assert (result.written, result.files) == (10, 1)


def test_options_set_the_layout_of_the_data_set(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    options = TableLayout(
        max_rows_per_file=10, data_storage_version="2.1", stable_row_ids=True, vector_columns={"v": 2}
    )
    df = spark.range(0, 40, 1, 2).selectExpr("id", "array(cast(id as float), 1f) AS v")

    result = write_table(df, spec, table, options=options)

    assert result.files == 4
    written = dataset(spec, table)
    assert written.data_storage_version == "2.1"
    assert written.has_stable_row_ids
    assert written.schema.field("v").type == pa.list_(pa.float32(), 2)


def test_an_append_keeps_the_columns_and_the_format_of_the_table(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    options = TableLayout(data_storage_version="2.0", vector_columns={"v": 2})
    write_table(spark.sql("SELECT 1L AS id, array(1f, 2f) AS v"), spec, table, options=options)
    other = TableLayout(data_storage_version="2.1")
    write_table(spark.sql("SELECT array(3f, 4f) AS v, 2 AS id"), spec, table, options=other)

    written = dataset(spec, table)
    assert written.data_storage_version == "2.0"
    assert written.to_table().to_pylist() == [{"id": 1, "v": [1.0, 2.0]}, {"id": 2, "v": [3.0, 4.0]}]


def test_an_overwrite_changes_the_columns_on_request_and_keeps_the_format(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    write_table(spark.range(3), spec, table, options=TableLayout(data_storage_version="2.0"))
    write_table(
        spark.sql("SELECT 'x' AS name"),
        spec,
        table,
        mode="overwrite",
        options=TableLayout(data_storage_version="2.2"),
        schema_mode="overwrite",
    )

    written = dataset(spec, table)
    assert written.to_table().to_pylist() == [{"name": "x"}]
    [file] = written.get_fragments()[0].data_files()
    assert (written.data_storage_version, file.file_minor_version) == ("2.0", 0)


def test_create_refuses_a_data_set_that_exists(spark: SparkSession, spec: NamespaceSpec, table: str) -> None:
    write_table(spark.range(3), spec, table)

    with pytest.raises(TableAlreadyExistsError, match="version 1 exists"):
        write_table(spark.range(3), spec, table, mode="create")


def test_columns_that_do_not_fit_are_refused_before_anything_is_written(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    write_table(spark.range(3), spec, table)

    with pytest.raises(TableSchemaValidationError, match="id is string"):
        write_table(spark.sql("SELECT 'x' AS id"), spec, table)


def test_a_table_that_is_not_declared_is_refused(spark: SparkSession, spec: NamespaceSpec) -> None:
    with pytest.raises(TableNotFoundError):
        write_table(spark.range(3), spec, "nowhere")


@pytest.mark.parametrize(("argument", "value"), [("mode", "replace"), ("key", " "), ("table", "db$$orders")])
def test_a_wrong_argument_is_named(
    spark: SparkSession, spec: NamespaceSpec, argument: str, value: str
) -> None:
    arguments = {"table": "orders", argument: value}

    with pytest.raises(InvalidInputError, match=argument):
        write_table(spark.range(3), spec, **arguments)


def test_the_table_itself_at_an_older_version_can_be_an_input(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    write_table(spark.range(3), spec, table)
    doubled = read_table(spark, spec, table, version=1).selectExpr("id * 2 AS id")

    write_table(doubled, spec, table, mode="overwrite")

    assert ids() == [0, 2, 4]
