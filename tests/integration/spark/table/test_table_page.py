"""The example of the page on tables: a table is written, read, and its changes are consumed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_example_of_the_page_runs(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path)
    # [START table]
    from airflow_provider_lancens import connect

    lake = connect("dir", {"root": folder}, spark=spark)
    lake.create_namespace("shop")
    orders = lake.declare_table("shop.orders")

    rows = [(1, "2026-11-01", 5.0), (2, "2026-11-01", 7.5)]
    day = spark.createDataFrame(rows, "id long, day string, amount double")
    first = orders.append(day, key="orders of 2026-11-01")
    orders.append(day, key="orders of 2026-11-01")  # the same key: in place of its rows

    corrected = day.where("id = 2").withColumn("amount", day.amount + 1)
    orders.upsert(corrected, on=["id"])
    assert orders.count_rows(filter="amount > 8") == 1
    assert orders.at(first.version).count_rows(filter="amount > 8") == 0
    assert lake.table(first.as_dict()).to_arrow(columns=["id"]).num_rows == 2

    with orders.changes(bookmark="billing") as changes:  # the bookmark moves at the end
        changes.read(columns=["id", "amount"]).show()
    assert orders.changes(bookmark="billing").is_empty
    orders.delete("day < '2026-12-01'", key="orders before December")
    orders.restore(first.version)
    assert [one.version for one in orders.history()] == [5, 4, 3, 2, 1]
    # [END table]
