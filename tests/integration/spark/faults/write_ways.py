"""Ways to write numbers to the column `id` of a table with Spark."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, WriteResult
from airflow_provider_lancens.spark.keys.key_lookup import find_write
from tests.integration.spark.faults.step_gates import Stop
from tests.support.writes import write_files, write_table

Ids = tuple[int, int]


class Write(Protocol):
    """Writes a range of numbers."""

    def __call__(
        self,
        spark: SparkSession,
        spec: NamespaceSpec,
        table: str,
        ids: Ids,
        *,
        gate: Stop | None,
        **how: Any,
    ) -> WriteResult: ...


def append(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    ids: Ids,
    *,
    gate: Stop | None = None,
    **how: Any,
) -> WriteResult:
    del gate  # the gate is closed in this process
    return write_table(spark.range(*ids), spec, table, **how)


def upsert(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    ids: Ids,
    *,
    gate: Stop | None = None,
    **how: Any,
) -> WriteResult:
    return append(spark, spec, table, ids, gate=gate, mode="upsert", on=["id"], **how)


def save(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    ids: Ids,
    *,
    gate: Stop | None = None,
    **how: Any,
) -> WriteResult:
    """By the data source, which plans and commits in separate processes."""
    # Imported here, since an older PySpark lacks it.
    from airflow_provider_lancens.spark import lance_data_source
    from tests.integration.spark.faults.gated_source import gated_data_source

    spark.dataSource.register(
        gated_data_source(spec, "lake", gate) if gate else lance_data_source(spec, "lake")
    )
    spark.range(*ids).write.format("lake").option("table", table).options(**how).mode("append").save()
    found = find_write(spec, table, how["key"])
    assert found is not None
    return found


def copy(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    ids: Ids,
    *,
    gate: Stop | None = None,
    **how: Any,
) -> WriteResult:
    """Directly from a Parquet file."""
    del gate  # the gate is closed in this process
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        pq.write_table(pa.table({"id": pa.array(range(*ids), pa.int64())}), path)
        return write_files(spark, FileSource("parquet", [str(path)]), spec, table, **how)


WAYS: Mapping[str, Write] = {"append": append, "upsert": upsert, "save": save, "copy": copy}
