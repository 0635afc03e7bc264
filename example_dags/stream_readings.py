"""Streams as tasks: readings arrive as files, and each run writes the new readings.

A second stream reads the table that the first one writes, and keeps readings of hot days in another table.
Each run resumes from the checkpoint, and a task that is killed and retried writes no row twice.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceStreamOperator,
)

CONNECTION = "lake"
READINGS, HOT = "outdoors$readings", "outdoors$hot_days"
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}


# [START howto_stream]
def new_files(spark: Any, folder: str) -> Any:
    """Return the readings in files that the query has not read yet."""
    columns = "station string, day date, celsius double"
    return spark.readStream.option("maxFilesPerTrigger", 100).csv(folder, schema=columns)


def hot_days(spark: Any) -> Any:
    """Return the readings of hot days among the rows that the table has gained."""
    readings = spark.readStream.format("lancens").option("table", READINGS).load()
    return readings.where("celsius >= 30")


# [END howto_stream]


with DAG(
    dag_id="lance_stream_readings",
    schedule=None,
    max_active_runs=1,
    params={"folder": Param("/tmp/readings", type="string")},  # noqa: S108 an example
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:

    @task
    def arrive(folder: str) -> None:
        """Add a file, as a station would."""
        files = Path(folder) / "files"
        files.mkdir(parents=True, exist_ok=True)
        number = len(list(files.iterdir()))
        rows = [f"station {one},2026-07-{number + 1:02},{25 + one}" for one in range(10)]
        (files / f"{number}.csv").write_text("\n".join(rows))

    given = {"lance_conn_id": CONNECTION}
    create = LanceCreateNamespaceOperator(task_id="create", namespace="outdoors", **given)
    declare = LanceDeclareTableOperator.partial(task_id="declare", **given).expand(table=[READINGS, HOT])

    # [START howto_stream_tasks]
    write = LanceStreamOperator(
        task_id="write",
        table=READINGS,
        source=new_files,
        op_kwargs={"folder": "{{ params.folder }}/files"},
        checkpoint="{{ params.folder }}/checkpoints/readings",
        spark_conf=SPARK,
        **given,
    )
    keep = LanceStreamOperator(
        task_id="keep",
        table=HOT,
        source=hot_days,
        checkpoint="{{ params.folder }}/checkpoints/hot_days",
        spark_conf=SPARK,
        **given,
    )
    # [END howto_stream_tasks]

    create >> declare >> arrive("{{ params.folder }}") >> write >> keep
