"""An ingestion that hangs in Spark's Python worker, until its task is killed; the retry doesn't hang."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_lancens.operators.spark_ingest import LanceSparkIngestOperator


def hanging(spark: Any, marker: str) -> Any:
    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import time
        from pathlib import Path

        if not Path(marker).exists():
            worker, daemon = os.getpid(), os.getppid()
            status = Path(f"/proc/{daemon}/status").read_text()
            jvm = next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))
            Path(f"{marker}.new").write_text(f"{worker} {daemon} {jvm}")
            Path(f"{marker}.new").rename(marker)
            time.sleep(600)
        yield from batches

    return spark.range(0, 10, 1, 1).mapInArrow(rows, "id long")


with DAG(
    dag_id="killed",
    schedule=None,
    params={"table": "db$t", "lance_conn_id": "lake", "spark_conn_id": "", "marker": ""},
    render_template_as_native_obj=True,
) as dag:
    LanceSparkIngestOperator(
        task_id="ingest",
        table="{{ params.table }}",
        lance_conn_id="{{ params.lance_conn_id }}",
        spark_conn_id="{{ params.spark_conn_id }}",
        source=hanging,
        op_kwargs={"marker": "{{ params.marker }}"},
        spark_conf={
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.driver.host": "127.0.0.1",
        },
        retries=1,
        retry_delay=timedelta(0),
        execution_timeout=timedelta(hours=1),
    )
