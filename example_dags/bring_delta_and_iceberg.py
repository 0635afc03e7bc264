"""Copy tables of Delta Lake and Iceberg to Lance: as a whole when they have changed, or only new rows.

A run that finds no new version of a table writes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens import WriteIdentity
from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceStreamOperator,
)

LAKE = {"lance_conn_id": "lake"}

# [START howto_bring_delta]
DELTA = {
    "spark.jars": "{{ var.value.delta_jars }}",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@task.lance_spark(spark_conf=DELTA, **LAKE)
def bring_customers(path: str, lake: Any = None) -> dict[str, Any]:
    """Replace a table by the newest version of a Delta table, unless that was written before."""
    version = lake.spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").first()["version"]
    rows = lake.spark.read.format("delta").option("versionAsOf", version).load(path)
    key = WriteIdentity(f"version {version} of {path}", on_existing_key="skip")
    return lake.table("shop.customers").overwrite(rows, schema_mode="overwrite", key=key).as_dict()


# [END howto_bring_delta]


# [START howto_bring_iceberg]
ICEBERG = {
    "spark.jars": "{{ var.value.iceberg_jars }}",
    "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.iceberg.type": "hive",
    "spark.sql.catalog.iceberg.uri": "{{ var.value.metastore }}",
}


@task.lance_spark(spark_conf=ICEBERG, **LAKE)
def bring_products(name: str, lake: Any = None) -> dict[str, Any]:
    """Replace a table by the current snapshot of an Iceberg table, unless that was written before."""
    snapshot = lake.spark.table(f"{name}.refs").where("name = 'main'").first()["snapshot_id"]
    rows = lake.spark.read.option("versionAsOf", snapshot).table(name)
    key = WriteIdentity(f"snapshot {snapshot} of {name}", on_existing_key="skip")
    return lake.table("shop.products").overwrite(rows, schema_mode="overwrite", key=key).as_dict()


# [END howto_bring_iceberg]


# [START howto_bring_delta_stream]
def gained_rows(spark: Any, path: str) -> Any:
    """Return the rows that a Delta table has gained since the run before."""
    return spark.readStream.format("delta").load(path)


# [END howto_bring_delta_stream]


with DAG(
    dag_id="lance_bring_delta_and_iceberg",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="shop", **LAKE)
    declare = LanceDeclareTableOperator(
        task_id="declare", table=["shop.customers", "shop.products", "shop.visits"], **LAKE
    )
    # [START howto_bring_delta_stream_operator]
    bring_visits = LanceStreamOperator(
        task_id="bring_visits",
        table="shop.visits",
        source=gained_rows,
        op_kwargs={"path": "{{ var.value.delta_tables }}/visits"},
        checkpoint="{{ var.value.checkpoints }}/shop.visits",
        spark_conf=DELTA,
        **LAKE,
    )
    # [END howto_bring_delta_stream_operator]
    customers = bring_customers("{{ var.value.delta_tables }}/customers")
    products = bring_products("iceberg.sales.products")
    create >> declare >> [customers, products, bring_visits]
