"""Maintenance of a table by a plan, and quick commits to maintain."""

from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark import MaintenanceResult
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import MaintenancePlan
from tests.support.maintained_tables import Maintained

VECTOR = pa.list_(pa.float32(), 2)


def maintained(table: Maintained, **plan: Any) -> MaintenanceResult:
    return maintain_table(table.spark, table.spec, table.id, MaintenancePlan(**plan))


def write(
    table: Maintained, first: int, end: int, files: int = 1, mode: Any = "append", **options: Any
) -> None:
    """One commit by pylance, which takes less time than Spark; with other options of it."""
    ids = range(first, end)
    new = pa.table(
        {"id": ids, "word": [f"word {one}" for one in ids], "v": pa.array([[one, 0] for one in ids], VECTOR)}
    )
    lance.write_dataset(
        new,
        namespace_client=table.spec.connect(),
        table_id=table.parts,
        storage_options=dict(table.described.storage_options or {}),
        mode=mode,
        max_rows_per_file=(end - first) // files,
        **options,
    )


def overwrite(table: Maintained, times: int) -> None:
    for first in range(times):
        write(table, first, first + 10, mode="overwrite")


def no_spark() -> Any:
    pytest.fail("Spark was started")
