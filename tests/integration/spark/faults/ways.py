"""The ways by which Spark brings numbers into the column `id` of a table."""

from collections.abc import Mapping
from typing import Any, Protocol

from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, WriteResult, find_write, write_table
from tests.integration.spark.faults.gates import Gate

Ids = tuple[int, int]


class Write(Protocol):
    """Brings the numbers from the first to before the second."""

    def __call__(
        self, spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids, *, gate: Gate | None, **how: Any
    ) -> WriteResult: ...


def append(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids, *, gate: Gate | None = None, **how: Any
) -> WriteResult:
    del gate  # which is closed in this very process
    return write_table(spark.range(*ids), spec, table, **how)


def upsert(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids, *, gate: Gate | None = None, **how: Any
) -> WriteResult:
    return append(spark, spec, table, ids, gate=gate, mode="upsert", on=["id"], **how)


def save(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids, *, gate: Gate | None = None, **how: Any
) -> WriteResult:
    """By the data source, which plans and commits in processes of its own."""
    # Here, since an older PySpark has none.
    from airflow_provider_lancens.spark import lance_data_source
    from tests.integration.spark.faults.gated_source import gated_data_source

    spark.dataSource.register(
        gated_data_source(spec, "lake", gate) if gate else lance_data_source(spec, "lake")
    )
    spark.range(*ids).write.format("lake").option("table", table).options(**how).mode("append").save()
    found = find_write(spec, table, how["idempotency_key"])
    assert found is not None
    return found


WAYS: Mapping[str, Write] = {"append": append, "upsert": upsert, "save": save}
