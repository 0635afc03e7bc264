"""A Spark Declarative Pipeline as a task: readings arrive as files, are checked, and added to Lance tables.

The next tasks read what the pipeline has added since the bookmark of this DAG. A pipeline that is killed and
retried adds no row twice. It requires PySpark 4.1 or newer with Spark Connect.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Param, task

from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceFindChangesOperator,
    LanceTagOperator,
    LanceUpsertOperator,
)

CONNECTION = "lake"
READINGS, REFUSED, HIGHS = "stations$readings", "stations$refused", "stations$highs"
PIPELINE = Path(__file__).parent / "pipelines" / "readings"


def highs(spark: Any, readings: Any) -> Any:
    """Return the highest temperatures of the days for which readings have arrived."""
    arrived = readings.changes().read(columns=["station", "time"])
    query = """
        SELECT station, date(time) AS day, max(celsius) AS celsius
        FROM {readings}
        WHERE (station, date(time)) IN (SELECT station, date(time) FROM {arrived})
        GROUP BY station, date(time)
    """
    return spark.sql(query, arrived=arrived, readings=readings.read())


with DAG(
    dag_id="lance_pipeline_readings",
    schedule=None,
    max_active_runs=1,
    params={"folder": Param("/tmp/readings_pipeline/files", type="string")},  # noqa: S108 an example
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:

    @task
    def arrive(folder: str) -> None:
        """Add a file, as a station would: one of its readings is implausible, and one line is damaged."""
        files = Path(folder)
        files.mkdir(parents=True, exist_ok=True)
        number = len(list(files.glob("*.json")))
        temperatures = [15.0, 21.5, 999.0]
        rows = [
            {"station": "harbor", "time": f"2026-07-01T{hour:02}:{number % 60:02}:00Z", "celsius": celsius}
            for hour, celsius in enumerate(temperatures)
        ]
        unfinished = files / f".{number}"
        unfinished.write_text("\n".join([*map(json.dumps, rows), '{"station": "har']))
        unfinished.rename(files / f"{number}.json")

    given = {"lance_conn_id": CONNECTION}
    create = LanceCreateNamespaceOperator(task_id="create", namespace="stations", **given)
    declare = LanceDeclareTableOperator.partial(task_id="declare", **given).expand(
        table=[READINGS, REFUSED, HIGHS]
    )

    # [START howto_pipeline_tasks]
    pipeline = BashOperator(
        task_id="pipeline",
        bash_command='PYTHONPATH="$PWD:$PYTHONPATH" exec spark-pipelines run --spec spark-pipeline.yml',
        cwd=str(PIPELINE),
        env={
            "LAKE_URI": f"{{{{ conn.{CONNECTION}.host }}}}",
            "LAKE_ROOT": f"{{{{ conn.{CONNECTION}.extra_dejson.root }}}}",
            "READINGS_FOLDER": "{{ params.folder }}",
        },
        append_env=True,
        do_xcom_push=False,
    )
    changes = LanceFindChangesOperator(task_id="changes", table=READINGS, bookmark="highs", **given)
    compute = LanceUpsertOperator(
        task_id="compute",
        table=HIGHS,
        source=highs,
        inputs={"readings": changes.output},
        on=["station", "day"],
        spark_conf={"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"},
        **given,
    )
    move = LanceTagOperator(
        task_id="move",
        table=READINGS,
        version=changes.output["version"],
        location=changes.output["location"],
        tag="highs",
        **given,
    )
    # [END howto_pipeline_tasks]

    create >> declare >> arrive("{{ params.folder }}") >> pipeline >> changes >> compute >> move
