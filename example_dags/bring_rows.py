"""Load rows from other systems: files in folders of days, a database by JDBC, pandas, Polars, and Arrow.

Each task replaces the rows that it has loaded before, so it may be retried and cleared.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseHook, task

from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceOverwriteOperator,
)

LAKE = {"lance_conn_id": "lake"}
DAY = "{{ (dag_run.logical_date or dag_run.run_after) | ds }}"
LANDING = Path(tempfile.gettempdir()) / "lance_example_landing"


@task
def land(day: str) -> str:
    """Return the folder of another system's files, with a folder for each day; here they are generated."""
    for one, lines in ((day, "1,2.5\n2,\n"), ("2020-02-29", "3,1\n")):
        folder = LANDING / f"day={one}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sales.csv").write_text(f"id,price\n{lines}")
    return str(LANDING)


# [START howto_bring_csv]
def csv_of(spark: Any, folder: str, day: str) -> Any:
    """Return the rows of a day; Spark infers no types here, so that each day has the same ones."""
    files = spark.read.option("header", True).schema("id BIGINT, price DOUBLE, day DATE").csv(folder)
    return files.where(f"day = DATE '{day}'")


# [END howto_bring_csv]


# [START howto_bring_jdbc]
def table_of(spark: Any, name: str) -> Any:
    """Return a table of the database that the connection `shop_db` names, read by four queries at once."""
    database = BaseHook.get_connection("shop_db")
    return (
        spark.read.format("jdbc")
        .option("url", f"jdbc:postgresql://{database.host}:{database.port or 5432}/{database.schema}")
        .option("driver", "org.postgresql.Driver")
        .option("user", database.login)
        .option("password", database.password or "")
        .option("dbtable", name)
        .options(partitionColumn="id", lowerBound=0, upperBound=1_000_000, numPartitions=4)
        .load()
    )


# [END howto_bring_jdbc]


# [START howto_bring_pandas]
@task
def bring_rates() -> dict[str, Any]:
    """Replace a small table by a DataFrame of pandas, without Spark."""
    import pandas as pd

    rates = pd.DataFrame({"currency": ["EUR", "CHF"], "rate": [1.08, 1.13]})
    lake = LanceHook("lake").catalog()
    return lake.declare_table("shop.rates").overwrite(rates, key="rates").as_dict()


# [END howto_bring_pandas]


# [START howto_bring_polars]
@task
def bring_prices(folder: str) -> dict[str, Any]:
    """Replace a table by the rows that Polars reads from files; a DataFrame is passed as it is."""
    import polars as pl

    sales = pl.scan_csv(f"{folder}/*/*.csv", schema={"id": pl.Int64, "price": pl.Float64})
    prices = sales.drop_nulls().select("id", cents=(pl.col("price") * 100).cast(pl.Int64))
    lake = LanceHook("lake").catalog()
    return lake.declare_table("shop.prices").overwrite(prices.collect_batches(), key="prices").as_dict()


# [END howto_bring_polars]


# [START howto_bring_arrow]
@task
def bring_codes(folder: str) -> dict[str, Any]:
    """Append an Arrow table."""
    import pyarrow.csv

    codes = pyarrow.csv.read_csv(f"{folder}/day=2020-02-29/sales.csv")
    lake = LanceHook("lake").catalog()
    return lake.declare_table("shop.codes").append(codes, key="codes of 2020-02-29").as_dict()


# [END howto_bring_arrow]


with DAG(
    dag_id="lance_bring_rows",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args={"retries": 2},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="shop", **LAKE)
    declare = LanceDeclareTableOperator(
        task_id="declare", table=["shop.sales", "shop.sales_of_day", "shop.customers"], **LAKE
    )
    folder = land(DAY)
    # [START howto_bring_folders]
    bring_all = LanceOverwriteOperator(
        task_id="bring_all",
        table="shop.sales",
        source={"format": "csv", "paths": folder, "schema": {"id": "int64", "price": "double"}},
        **LAKE,
    )
    # [END howto_bring_folders]
    bring_day = LanceOverwriteOperator(
        task_id="bring_day",
        table="shop.sales_of_day",
        source=csv_of,
        op_kwargs={"folder": folder, "day": DAY},
        where=f"day = '{DAY}'",
        **LAKE,
    )
    # [START howto_bring_jdbc_operator]
    bring_customers = LanceOverwriteOperator(
        task_id="bring_customers",
        table="shop.customers",
        source=table_of,
        op_kwargs={"name": "customers"},
        spark_conf={"spark.jars": "{{ var.value.postgresql_jar }}"},
        **LAKE,
    )
    # [END howto_bring_jdbc_operator]
    create >> declare >> [bring_all, bring_day, bring_customers]
    create >> [bring_rates(), bring_prices(folder), bring_codes(folder)]
