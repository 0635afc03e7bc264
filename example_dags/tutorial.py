"""The tutorial's DAG: write the temperatures of a day into a table, and report on exactly that version."""

from datetime import UTC, datetime

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import LanceDeclareTableOperator, LanceOverwriteOperator
from airflow_provider_lancens.sensors import LanceTableVersionSensor

TABLE = {"table": "default$temperatures", "lance_conn_id": "lake"}
DAY = "{{ (dag_run.logical_date or dag_run.run_after) | ds }}"


def temperatures_of(spark, day):
    return spark.range(24).selectExpr(f"DATE '{day}' AS day", "id AS hour", "10 + id % 12 AS celsius")


@task
def report(version):
    import lance

    from airflow_provider_lancens.hooks import LanceHook

    namespace = LanceHook.for_connection("lake").get_conn()
    table = lance.dataset(
        namespace_client=namespace, table_id=["default", "temperatures"], version=int(version)
    )
    print(f"version {table.version} has {table.count_rows()} rows")


with DAG(
    "lance_tutorial",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    default_args={"retries": 2},
) as dag:
    declare = LanceDeclareTableOperator(task_id="declare", **TABLE)
    ingest = LanceOverwriteOperator(
        task_id="ingest",
        source=temperatures_of,
        op_kwargs={"day": DAY},
        where=f"day = '{DAY}'",
        **TABLE,
    )
    wait = LanceTableVersionSensor(task_id="wait", min_version=ingest.output["version"], **TABLE)
    declare >> ingest
    report(wait.output["version"])
