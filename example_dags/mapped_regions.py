"""A mapped ingestion: one task for each region of a list that may grow, shrink or change its order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceDeclareTableOperator,
    lance_spark,
)

TABLE = {"table": "default$sales_by_region", "lance_conn_id": "lake"}
SPARK = {"spark.master": "local[2]"}


def sales_of(spark: Any, region: str) -> Any:
    """Return the sales of a region; here they are generated."""
    return spark.range(10).selectExpr("id", f"'{region}' AS region")


@task
def regions() -> list[dict[str, str]]:
    """Return the arguments of each mapped task."""
    return [{"region": region} for region in ("north", "south")]


# [START howto_loop]
@task
def load_in_a_loop(places: list[str], ds: str | None = None, run_id: str | None = None) -> None:
    """Write the rows of several places in one task: each write has a key that says what it writes."""
    with lance_spark(lance_conn_id="lake", spark_conf=SPARK) as lake:
        for place in places:
            key = f"{place} of {ds or run_id}"
            lake.table(TABLE["table"]).append(sales_of(lake.spark, place), key=key)


# [END howto_loop]


with DAG(
    dag_id="lance_mapped_regions",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    declare = LanceDeclareTableOperator(task_id="declare", **TABLE)
    # [START howto_mapped]
    load = LanceAppendOperator.partial(
        task_id="load",
        source=sales_of,
        spark_conf=SPARK,
        pool="default_pool",
        max_active_tis_per_dagrun=2,
        **TABLE,
    ).expand(op_kwargs=regions())
    # [END howto_mapped]
    declare >> load >> load_in_a_loop(["east", "west"])
