"""Tasks that write, to be cleared, marked as success, reloaded, killed and backfilled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators.changes import LanceFindChangesOperator
from airflow_provider_lancens.operators.ingest import LanceSparkIngestOperator
from airflow_provider_lancens.operators.versions import LanceTagVersionOperator
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

SMALL = {"spark.master": "local[1]", "spark.driver.memory": "512m", "spark.ui.enabled": "false"}
GIVEN = {"table": "{{ params.table }}", "lance_conn_id": "lake", "spark_conf": SMALL}
RETRIED = {"retries": 2, "retry_delay": timedelta(seconds=1)}


def rows_of(spark: Any, item: str) -> Any:
    return spark.range(10).selectExpr("id", f"'{item}' AS item")


def rows_in(spark: Any, file: str) -> Any:
    return spark.range(int(Path(file).read_text())).selectExpr("id", "'day' AS item")


def held_rows(spark: Any, folder: str) -> Any:
    """Ten rows, of which Spark's worker leaves a file with its id until it may go on."""

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        import time

        Path(folder, f"{os.getpid()}.running").touch()
        while not Path(folder, "released").exists():
            time.sleep(0.1)
        yield from batches

    return (
        spark.range(0, 10, 1, 1).selectExpr("id", "'held' AS item").mapInArrow(rows, "id long, item string")
    )


with DAG(
    "mapped_gestures", schedule=None, params={"table": "", "list": ""}, default_args=RETRIED
) as mapped_gestures:

    @task
    def items(params: Any = None) -> list[dict[str, str]]:
        return [{"item": item} for item in Path(params["list"]).read_text().split()]

    LanceSparkIngestOperator.partial(task_id="load", source=rows_of, **GIVEN).expand(op_kwargs=items())

with DAG("reloaded_gestures", schedule=None, params={"table": "", "file": ""}) as reloaded_gestures:
    load = LanceSparkIngestOperator(
        task_id="load",
        source=rows_in,
        op_kwargs={"file": "{{ params.file }}"},
        mode="overwrite",
        replace_where="item = 'day'",
        on_existing_key="replace",
        **GIVEN,
    )
    wait = LanceTableVersionSensor(
        task_id="wait",
        table="{{ params.table }}",
        min_version=load.output["version"],
        lance_conn_id="lake",
        poke_interval=1,
    )

with DAG(
    "filed_gestures", schedule=None, params={"table": "", "folder": ""}, default_args=RETRIED
) as filed_gestures:
    LanceSparkIngestOperator(
        task_id="load",
        source={"format": "csv", "paths": ["{{ params.folder }}/*.csv"]},
        on_existing_key="replace_if_changed",
        **GIVEN,
    )

with DAG(
    "held_gestures",
    schedule=None,
    params={"table": "", "folder": "", "lance": "lake", "spark": "one_core"},
    # Ample for what is stopped to be started again.
    default_args={"retries": 20, "retry_delay": timedelta(seconds=3)},
) as held_gestures:
    LanceSparkIngestOperator(
        task_id="load",
        table="{{ params.table }}",
        source=held_rows,
        op_kwargs={"folder": "{{ params.folder }}"},
        lance_conn_id="{{ params.lance }}",
        spark_conn_id="{{ params.spark }}",
    )
    LanceTableVersionSensor(
        task_id="wait",
        table="{{ params.table }}",
        min_version=1,
        lance_conn_id="{{ params.lance }}",
        poke_interval=1,
    )

DAILY = f"{os.environ.get('LANCE_TEST_DATABASE', 'db')}$daily"
"""Nobody gives a scheduled run a table."""
COPY = f"{DAILY}_copy"


def rows_of_day(spark: Any, day: str, folder: str) -> Any:
    """As many rows as the file of the day says, or ten."""
    file = Path(folder, day)
    count = int(file.read_text()) if file.exists() else 10
    return spark.range(count).selectExpr("id", f"'{day}' AS item")


def changed_rows(spark: Any, changes: Any) -> Any:
    """The rows to put into the copy, and the rows to delete from it, which were not added again."""
    query = """
        SELECT id, item, every(_change_type = 'delete') AS gone
        FROM {changes} WHERE _change_type <> 'update_preimage' GROUP BY id, item
    """
    return spark.sql(query, changes=changes)


with DAG(
    "daily_gestures",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # of those that move the bookmark
    default_args={**RETRIED, "lance_conn_id": "lake"},
) as daily_gestures:
    load = LanceSparkIngestOperator(
        task_id="load",
        table=DAILY,
        source=rows_of_day,
        op_kwargs={"day": "{{ ds }}", "folder": os.environ.get("LANCE_TEST_LANDING", "")},
        mode="overwrite",
        replace_where="item = '{{ ds }}'",
        options={"enable_stable_row_ids": True},
        spark_conf=SMALL,
    )
    changes = LanceFindChangesOperator(task_id="changes", table=DAILY, bookmark="copied")
    copy = LanceSparkIngestOperator(
        task_id="copy",
        table=COPY,
        source=changed_rows,
        inputs={"changes": {"changes": changes.output}},
        mode="upsert",
        on=["id", "item"],
        delete_when="gone",
        helper_columns=["gone"],
        idempotency_key="copy/{{ ti.xcom_pull('changes') }}",
        spark_conf=SMALL,
    )
    move = LanceTagVersionOperator(
        task_id="move", table=DAILY, version=changes.output["version"], tag="copied"
    )
    load >> changes >> copy >> move

dag = mapped_gestures
