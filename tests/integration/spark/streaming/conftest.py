"""Streams of files, and the two ways to write them."""
# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pyspark_versions import need_data_sources

need_data_sources()

from airflow_provider_lancens.spark import NamespaceSpec
from tests.support.data_sources import Load, load, managed_by, spec, table
from tests.support.streams import Stream

__all__ = ["Load", "load", "managed_by", "spec", "table"]

SINKS = ("format", pytest.param("foreach_batch", marks=pytest.mark.long))


@pytest.fixture
def stream(spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path) -> Stream:
    folder = tmp_path / "stream"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Stream(spark, spec, table, folder)


@pytest.fixture(params=SINKS)
def either(stream: Stream, request: pytest.FixtureRequest) -> Stream:
    """A query that writes by the data source, or by a function."""
    stream.sink = request.param
    return stream


Versions = Callable[[], int]
