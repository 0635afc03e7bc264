"""A complete DAG: a day is loaded in place of its earlier rows, and a sensor waits for the version."""

from datetime import UTC, datetime

from airflow.sdk import DAG

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import LanceDeclareTableOperator, LanceOverwriteOperator
from airflow_provider_lancens.sensors import LanceTableVersionSensor

START = datetime(2026, 1, 1, tzinfo=UTC)
LAKE = {"table": "default$readings", "lance_conn_id": "lake", "retries": 2}
DAY = "{{ (dag_run.logical_date or dag_run.run_after) | ds }}"


def readings_of(spark, day):
    return spark.range(24).selectExpr(f"DATE '{day}' AS day", "id AS hour", "15 + id % 7 AS temperature")


with DAG("lance_daily_readings", schedule="@daily", start_date=START, default_args=LAKE) as dag:
    declare = LanceDeclareTableOperator(task_id="declare")
    ingest = LanceOverwriteOperator(
        task_id="ingest",
        source=readings_of,
        op_kwargs={"day": DAY},
        where=f"day = '{DAY}'",
        outlets=[lance_table("default$readings", "lake")],
    )
    wait = LanceTableVersionSensor(task_id="wait", min_version=ingest.output["version"])
    declare >> ingest >> wait
