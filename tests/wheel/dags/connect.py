"""One ingestion through a Spark Connect server, in the database that the environment names."""

import os

from airflow.sdk import DAG

from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
)

DATABASE = os.environ["TEST_DATABASE"]
TABLE = f"{DATABASE}$numbers"


def numbers(spark):
    """Three rows."""
    return spark.range(3).selectExpr("id AS n")


with DAG(dag_id="connect", schedule=None, default_args={"lance_conn_id": "lake"}) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace=DATABASE)
    declare = LanceDeclareTableOperator(task_id="declare", table=TABLE)
    ingest = LanceAppendOperator(task_id="ingest", table=TABLE, source=numbers, spark_conn_id="server")
    create >> declare >> ingest
