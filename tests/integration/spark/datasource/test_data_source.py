"""`format("lake")`: the guarantees of `write_table` and `read_table`, as a data source."""
# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.pyspark_versions import need_data_sources

need_data_sources()

from airflow_provider_lancens.spark import LanceDataSource, NamespaceSpec
from airflow_provider_lancens.spark.keys.key_lookup import find_write
from tests.support.data_sources import Load, Save
from tests.support.spark_sessions import ATTEMPTS_OF_A_TASK
from tests.support.typed_rows import SCHEMA, VALUES

SECRET = "not-to-be-shown"
pytestmark = pytest.mark.thorough
only_managed = pytest.mark.parametrize("managed_by", ["impl"], indirect=True)
only_stored = pytest.mark.parametrize("managed_by", ["storage"], indirect=True)
mostly_managed = pytest.mark.parametrize(
    "managed_by", ["impl", pytest.param("storage", marks=pytest.mark.long)], indirect=True
)
mostly_stored = pytest.mark.parametrize(
    "managed_by", ["storage", pytest.param("impl", marks=pytest.mark.long)], indirect=True
)
"""Who decides the versions makes no difference above the commit, which `write_table` has in common."""


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.select("id").collect())


def leases(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("**/_lancens/writes/*"))


@mostly_managed
def test_rows_are_saved_once_and_read_at_their_version(
    spark: SparkSession, spec: NamespaceSpec, table: str, save: Save, load: Load, tmp_path: Path
) -> None:
    for _ in range(2):
        save(spark.range(0, 9, 1, 2), key="january", execution_id="1")
    newest = load()
    save(spark.range(9, 12))

    found = find_write(spec, table, "january")
    assert found is not None
    assert (found.version, found.written, found.files) == (1, 9, 2)
    assert ids(load(version=1)) == list(range(9))
    assert ids(newest) == list(range(9))  # unchanged since it was requested
    assert ids(load(columns="id", filter="id > 7")) == [8, 9, 10, 11]
    assert leases(tmp_path) == []


@only_managed
def test_a_retried_task_duplicates_nothing_and_a_failed_job_commits_nothing(
    spark: SparkSession, save: Save, load: Load, tmp_path: Path
) -> None:
    def failing(attempts: int) -> Any:
        def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from batches
            context = TaskContext.get()
            if context is not None and context.attemptNumber() < attempts:
                raise RuntimeError("this attempt fails")

        return step

    save(spark.range(0, 100, 1, 1).mapInArrow(failing(ATTEMPTS_OF_A_TASK - 1), "id long"))
    with pytest.raises(PySparkException, match="this attempt fails"):
        save(spark.range(100, 200, 1, 1).mapInArrow(failing(ATTEMPTS_OF_A_TASK), "id long"))

    assert ids(load()) == list(range(100))
    assert leases(tmp_path) == []


@mostly_stored
def test_an_overwrite_is_refused_after_a_concurrent_append(
    spark: SparkSession, spec: NamespaceSpec, table: str, save: Save, load: Load, tmp_path: Path
) -> None:
    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.table({"id": pa.array([77], pa.int64())})
            lance.write_dataset(
                rows, namespace_client=spec.connect(), table_id=table.split("$"), mode="append"
            )
            yield batch

    save(spark.range(3))
    with pytest.raises(PySparkException, match="changed its rows since this write began"):
        save(spark.range(9, 10, 1, 1).mapInArrow(step, "id long"), mode="overwrite")

    assert ids(load()) == [0, 1, 2, 77]
    assert leases(tmp_path) == []


@only_stored
def test_an_append_with_key_columns_replaces_rows(spark: SparkSession, save: Save, load: Load) -> None:
    save(spark.sql("SELECT id, 'old' AS state FROM range(3)"))
    save(spark.sql("SELECT id, 'new' AS state FROM range(2, 4)"), on="id")

    assert {(row["id"], row["state"]) for row in load().collect()} == {
        (0, "old"),
        (1, "old"),
        (2, "new"),
        (3, "new"),
    }


@only_stored
def test_every_type_comes_back_equal(spark: SparkSession, save: Save, load: Load) -> None:
    rows = list(itertools.zip_longest(*[[*values, None] for _, values in VALUES]))
    written = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    save(written)

    assert load().schema == SCHEMA
    assert load().collect() == written.collect()


@only_stored
def test_a_filter_of_a_query_leaves_others_their_rows_if_spark_pushes_filters_down(
    spark: SparkSession, save: Save, load: Load
) -> None:
    save(spark.sql("SELECT id, id / 2 AS half FROM range(10)"))
    pushdown = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(pushdown, "true")
    try:
        rows = load(filter="id < 9")
        found = ids(rows.where("id > 3 AND half < 4 AND id % 2 = 0"))
        all_others = ids(rows)
        either = ids(rows.where("id = 1 OR half = 4"))
        united = ids(rows.where("id < 2").union(rows.where("id > 7")))
    finally:
        spark.conf.set(pushdown, "false")

    assert found == [4, 6]
    assert all_others == list(range(9))
    assert either == [1, 8]
    assert united == [0, 1, 8]


@only_stored
def test_a_refused_option_is_reported_with_the_reason(
    spark: SparkSession, save: Save, load: Load, tmp_path: Path
) -> None:
    save(spark.range(3), key="january", fingerprint="a")

    with pytest.raises(PySparkException, match="different data"):
        save(spark.range(3), key="january", fingerprint="b", on_existing_key="skip")
    with pytest.raises(PySparkException, match="columns: id is string, but int64 in the table"):
        save(spark.sql("SELECT 'x' AS id"))
    with pytest.raises(PySparkException, match="has no version 9"):
        load(version=9)
    with pytest.raises(PySparkException, match="a Lance table has its own"):
        spark.read.schema("id long").format("lake").option("table", "t").load().collect()
    assert leases(tmp_path) == []


def test_no_plan_shows_the_options(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.dataSource.register(LanceDataSource)
    namespace = NamespaceSpec("dir", {"root": str(tmp_path), "storage.aws_session_id": SECRET})
    namespace.connect().declare_table(DeclareTableRequest(id=["orders"]))
    options = {f"namespace.{key}": value for key, value in namespace.properties.items()}
    options |= {"namespace.impl": namespace.impl, "table": "orders"}

    spark.range(3).write.format("lancens").options(**options).mode("append").save()
    rows = spark.read.format("lancens").options(**options).load()
    for detail in ("extended", "formatted"):
        rows.explain(mode=detail)

    shown = capsys.readouterr().out
    assert "lancens" in shown
    assert SECRET not in shown
    with pytest.raises(PySparkException) as refused:
        spark.read.format("lancens").options(**options, verzion=1).load()
    assert "verzion" in str(refused.value)
    assert SECRET not in str(refused.value)
