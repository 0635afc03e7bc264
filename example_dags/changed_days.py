"""Partitions: an ingestion reports the days that its commit changed, and another DAG runs only for these.

On Airflow 3.3 or newer, the second DAG has a run for each day. On older versions it has one for each commit,
whose event names the days.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, task

from airflow_provider_lancens import literal
from airflow_provider_lancens.assets import lance_table, new_versions
from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceOverwriteOperator,
    LanceUpsertOperator,
)

try:
    from airflow.sdk.exceptions import AirflowSkipException
except ImportError:  # Airflow 3.1
    from airflow.exceptions import AirflowSkipException

CONNECTION = os.environ.get("LANCE_EXAMPLE_CONNECTION", "lake")
SALES, TOTALS = "market$sales", "market$totals"
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
given = {"lance_conn_id": CONNECTION}


def sales(spark: Any, days: list[str]) -> Any:
    """Return the sales of some days; here they are generated."""
    numbers = spark.range(10).selectExpr("id AS number", "cast(id AS double) AS amount")
    return numbers.crossJoin(spark.createDataFrame([(day,) for day in days], "day string"))


# [START howto_partitions]
written = lance_table(SALES, CONNECTION)

with DAG(
    dag_id="lance_changed_days",
    schedule=None,
    params={"days": ["2026-11-01", "2026-11-02"]},
    render_template_as_native_obj=True,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="market", **given)
    declare = LanceDeclareTableOperator.partial(task_id="declare", **given).expand(table=[SALES, TOTALS])
    ingest = LanceUpsertOperator(
        task_id="ingest",
        table=SALES,
        source=sales,
        op_kwargs={"days": "{{ params.days }}"},
        on=["day", "number"],
        event_partitions="day",
        outlets=[written],
        spark_conf=SPARK,
        **given,
    )
    create >> declare >> ingest
# [END howto_partitions]


# [START howto_partitioned_schedule]
def on_each_day(asset: Asset) -> Any:
    """Return a schedule with a run for each changed day; with one for each commit before Airflow 3.3."""
    try:
        from airflow.sdk import PartitionedAssetTimetable
    except ImportError:
        return [asset]
    return PartitionedAssetTimetable(assets=asset)


@task(multiple_outputs=True)
def changed(dag_run: Any, triggering_asset_events: Any) -> dict[str, Any]:
    """Return the days to compute, a condition on them, and the newest version that this run knows of."""
    events = [event.extra for event in triggering_asset_events[written]]
    key = getattr(dag_run, "partition_key", None)
    days = {day for event in events for day in event["partitions"]} if key is None else {key}
    sales = new_versions(triggering_asset_events).get(SALES)
    if not days or sales is None:  # a task that had nothing to write
        raise AirflowSkipException("no day has changed")
    return {
        "days": sorted(days),
        "where": f"day IN ({', '.join(map(literal, sorted(days)))})",
        "sales": sales,
    }


def totals(spark: Any, sales: Any, where: str) -> Any:  # noqa: ARG001 an argument of every source
    """Return the totals of these days; a day without rows has none, and the overwrite removes its old one."""
    return sales.read(filter=where).groupBy("day").sum("amount").toDF("day", "amount")


with DAG(
    dag_id="lance_totals_of_changed_days",
    schedule=on_each_day(written),
    catchup=False,
    max_active_runs=1,  # the first two would both create the data of the totals, and one be retried
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
):
    found = changed()
    LanceOverwriteOperator(
        task_id="compute",
        table=TOTALS,
        source=totals,
        inputs={"sales": found["sales"]},
        op_kwargs={"where": found["where"]},
        where=found["where"],
        spark_conf=SPARK,
        **given,
    )
# [END howto_partitioned_schedule]
