"""Epochs that the data source writes, without Spark."""

import logging
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError
from pyspark.sql.types import LongType, StructField, StructType

from airflow_provider_lancens.spark import NamespaceSpec, connect
from airflow_provider_lancens.spark.datasource.stream_source import LanceStreamWriter
from airflow_provider_lancens.spark.options import Append, WriteRequest

SCHEMA = StructType([StructField("id", LongType())])


def test_an_epoch_that_spark_repeats_is_no_skipped_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = connect("dir", {"root": str(tmp_path)}).declare_table("t")
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})

    def commit(number: int) -> None:
        driver = LanceStreamWriter(spec, "t", WriteRequest(Append()), SCHEMA, "query")
        executor = pickle.loads(pickle.dumps(driver))
        message = executor.write(iter([pa.RecordBatch.from_pydict({"id": [number]})]))
        driver.commit([message], 0)

    commit(1)
    with caplog.at_level(logging.INFO):
        commit(1)
    with pytest.raises(InvalidInputError, match="other rows"):
        commit(2)

    assert table.to_arrow()["id"].to_pylist() == [1]
    assert "an earlier try has committed version 1 (1 row" in caplog.text
    assert "on_existing_key" not in caplog.text, "an argument that a stream doesn't have"


def test_an_epoch_is_found_although_its_source_has_a_column_more_since(tmp_path: Path) -> None:
    table = connect("dir", {"root": str(tmp_path)}).declare_table("t")
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})

    def commit(schema: StructType, **columns: list[object]) -> None:
        driver = LanceStreamWriter(spec, "t", WriteRequest(Append(schema_mode="merge")), schema, "query")
        rows = pa.RecordBatch.from_pydict(columns)
        driver.commit([pickle.loads(pickle.dumps(driver)).write(iter([rows]))], 0)

    wider = StructType([*SCHEMA, StructField("n", LongType())])
    commit(SCHEMA, id=[1, 2])
    commit(wider, id=[1, 2], n=[None, None])
    with pytest.raises(InvalidInputError, match="If the query was changed, run it as it was"):
        commit(wider, id=[1, 2], n=[None, 3])

    assert table.to_arrow().to_pylist() == [{"id": 1, "n": None}, {"id": 2, "n": None}]
