"""Files straight into a table: executors read them with Arrow, and no row goes through the JVM."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
)

LANDING = Path(tempfile.gettempdir()) / "lance_example_prices"


@task
def land() -> str:
    """Return the location of another system's files; here they are generated."""
    LANDING.mkdir(exist_ok=True)
    for shop in ("north", "south"):
        lines = [f"{shop},{number},{number / 4}" for number in range(1, 9)]
        (LANDING / f"{shop}.csv").write_text("\n".join(["shop,article,price", *lines]))
    return str(LANDING)


with DAG(
    dag_id="lance_spark_files",
    schedule=None,
    default_args={"lance_conn_id": "lake", "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="shops")
    declare = LanceDeclareTableOperator(task_id="declare", table="shops$prices")
    # [START howto_spark_files]
    ingest = LanceAppendOperator(
        task_id="ingest",
        table="shops$prices",
        source={
            "format": "csv",
            "paths": land(),
            "filter": "price >= 1 AND shop IS NOT NULL",
            "renames": {"article": "article_id"},
            "casts": {"price": "decimal(10, 2)"},
        },
        spark_conf={"spark.master": "local[2]"},
    )
    # [END howto_spark_files]
    create >> declare >> ingest
