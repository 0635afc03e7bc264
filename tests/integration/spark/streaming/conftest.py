"""Streams of files, and the two ways to write them; an older PySpark has only `foreach_batch`."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.pyspark_versions import SPARK_V_4_1_PLUS, has_data_sources, need_data_sources
from tests.support.data_sources import Load, load, managed_by, spec, table
from tests.support.streams import Stream

__all__ = ["Load", "load", "managed_by", "spec", "table"]

SINKS = (
    pytest.param("format", marks=has_data_sources),
    pytest.param("foreach_batch", marks=[pytest.mark.long] if SPARK_V_4_1_PLUS else []),
)


@pytest.fixture
def folder_stream(spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path) -> Stream:
    folder = tmp_path / "stream"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Stream(spark, spec, table, folder)


@pytest.fixture
def stream(folder_stream: Stream) -> Stream:
    """A query that writes by the data source."""
    need_data_sources()
    return folder_stream


@pytest.fixture(params=SINKS)
def either(folder_stream: Stream, request: pytest.FixtureRequest) -> Stream:
    """A query that writes by the data source, or by a function."""
    if request.param == "format":
        need_data_sources()
    folder_stream.sink = request.param
    return folder_stream
