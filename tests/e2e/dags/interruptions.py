"""Tasks that write, to be cleared, marked as success, reloaded and killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.operators.delete_rows import LanceDeleteOperator
from airflow_provider_lancens.operators.ingest import (
    LanceAppendOperator,
    LanceOverwriteOperator,
    LanceUpsertOperator,
    LanceWriteOperator,
)
from airflow_provider_lancens.operators.restore_table import LanceRestoreOperator
from airflow_provider_lancens.sensors.table_version_sensor import LanceTableVersionSensor

HERE = {"lance_conn_id": "lake", "spark_conn_id": "shared_spark"}
"""The lake, and a Spark Connect server that all tasks share: none has to start a JVM."""
GIVEN = {"table": "{{ params.table }}", **HERE}
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
    "mapped_writes", schedule=None, params={"table": "", "list": ""}, default_args=RETRIED
) as mapped_writes:

    @task
    def items(params: Any = None) -> list[dict[str, str]]:
        return [{"item": item} for item in Path(params["list"]).read_text().split()]

    LanceAppendOperator.partial(task_id="load", source=rows_of, **GIVEN).expand(op_kwargs=items())

with DAG("reloaded_writes", schedule=None, params={"table": "", "file": ""}) as reloaded_writes:
    load = LanceOverwriteOperator(
        task_id="load",
        source=rows_in,
        op_kwargs={"file": "{{ params.file }}"},
        where="item = 'day'",
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
    "filed_writes", schedule=None, params={"table": "", "folder": ""}, default_args=RETRIED
) as filed_writes:
    LanceAppendOperator(
        task_id="load",
        source={"format": "csv", "paths": ["{{ params.folder }}/*.csv"]},
        on_existing_key="redo_if_changed",
        **GIVEN,
    )

with DAG(
    "held_writes",
    schedule=None,
    params={"table": "", "folder": "", "lance": "lake", "spark": "one_core"},
    # Ample for what is stopped to be started again.
    default_args={"retries": 20, "retry_delay": timedelta(seconds=3)},
) as held_writes:
    LanceAppendOperator(
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

DAY = "{{ data_interval_start | ds }}"

with DAG(
    "dated_writes",
    schedule=CronDataIntervalTimetable("@daily", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    end_date=datetime(2026, 1, 9, tzinfo=UTC),  # no run is due by itself
    catchup=False,
    params={"table": ""},
    # Days that are written at the same time conflict.
    default_args={"retries": 20, "retry_delay": timedelta(seconds=3)},
) as dated_writes:
    written = LanceOverwriteOperator(
        task_id="load", source=rows_of, op_kwargs={"item": DAY}, where=f"item = '{DAY}'", **GIVEN
    )
    waits: dict[str, Any] = {"table": "{{ params.table }}", "lance_conn_id": "lake", "poke_interval": 1}
    written >> LanceTableVersionSensor(task_id="wait", **waits)
    own = LanceTableVersionSensor(task_id="own", min_version=written.output["version"], **waits)

    @task
    def read(made: Any, data_interval_start: Any = None) -> int:
        """The day's rows at exactly the version that the run made."""
        day = data_interval_start.date().isoformat()
        return int(LanceHook("lake").table(made).count_rows(filter=f"item = '{day}'"))

    own >> read(written.output)

with DAG("cleared_writes", schedule=None, params={"table": "", "file": ""}) as cleared_writes:

    def loaded(kind: type[LanceWriteOperator], name: str, **arguments: Any) -> None:
        kind(
            task_id=name,
            table=f"{{{{ params.table }}}}_{name}",
            source=rows_in,
            op_kwargs={"file": "{{ params.file }}"},
            **HERE,
            **arguments,
        )

    loaded(LanceAppendOperator, "append")
    loaded(LanceAppendOperator, "append_if_changed", on_existing_key="redo_if_changed")
    loaded(LanceAppendOperator, "append_skipped", on_existing_key="skip")
    loaded(LanceAppendOperator, "append_again", on_existing_key="write_again")
    loaded(LanceOverwriteOperator, "part", where="item = 'day'")
    loaded(LanceOverwriteOperator, "all")
    loaded(LanceUpsertOperator, "upsert", on=["id"])
    LanceDeleteOperator(
        task_id="delete", table="{{ params.table }}_delete", where="item = 'other'", lance_conn_id="lake"
    )
    LanceRestoreOperator(
        task_id="restore", table="{{ params.table }}_restore", version=1, lance_conn_id="lake"
    )

dag = mapped_writes
