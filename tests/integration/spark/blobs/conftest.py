"""A table with a blob column, and files that it may refer to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace import DescribeTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.support.blob_tables import Read
from tests.support.reads import read_table


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two files outside the table, of 100 and 1,000 bytes."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"a" * 100)
    (folder / "b.bin").write_bytes(bytes(range(250)) * 4)
    return folder


@pytest.fixture
def read(spark: SparkSession, spec: NamespaceSpec, table: str) -> Read:
    def values(blobs: Any = "all", **how: Any) -> dict[int, Any]:
        given = None if blobs is None else {"video": blobs}
        rows = read_table(spark, spec, table, blobs=given, **how).collect()
        return {
            row["id"]: row["video"] if blobs is None else row["video"] and bytes(row["video"]) for row in rows
        }

    return values


@pytest.fixture
def dataset(spec: NamespaceSpec, table: str) -> Callable[[], lance.LanceDataset]:
    return lambda: lance.dataset(spec.connect().describe_table(DescribeTableRequest(id=[table])).location)
