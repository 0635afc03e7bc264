"""Large values: a table of recordings that stay where they are, of which a task reads the first bytes."""

from __future__ import annotations

import tempfile
import wave
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    lance_spark,
)

CONNECTION = "lake"
RECORDINGS = "radio$recordings"
SPARK = {"spark.master": "local[2]"}
FOLDER = Path(tempfile.gettempdir()) / "lance_recordings"
RATE = 8000
"""Bytes of a second of sound: one channel, one byte a sample."""
HEADER = 44
"""Bytes of a recording that come before the sound."""


@task
def record() -> str:
    """Make recordings of one, two and three seconds; return their folder, which may be on S3 elsewhere."""
    FOLDER.mkdir(exist_ok=True)
    for number in range(3):
        with wave.open(str(FOLDER / f"{number}.wav"), "wb") as file:
            file.setparams((1, 1, RATE, 0, "NONE", ""))
            file.writeframes(bytes(RATE * (number + 1)))
    return str(FOLDER)


# [START howto_refer_to_files]
def files(spark: Any, folder: str) -> Any:
    """Return a row per file. Spark lists the folder, and reads no file: the content isn't selected."""
    found = spark.read.format("binaryFile").option("pathGlobFilter", "*.wav").load(folder)
    return found.selectExpr("_metadata.file_name AS name", "length", "_metadata.file_path AS sound")


# [END howto_refer_to_files]


# [START howto_read_ranges]
@task
def durations(recordings: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of each recording, for which the beginning of each file is read."""
    with lance_spark(lance_conn_id=CONNECTION, spark_conf=SPARK) as lake:
        rows = lake.table(recordings).read(blobs={"sound": (0, HEADER)}).collect()
    return {row["name"]: int.from_bytes(row["sound"][40:44], "little") / RATE for row in rows}


# [END howto_read_ranges]


with DAG(
    dag_id="lance_large_values",
    schedule=None,
    default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    given = {"lance_conn_id": CONNECTION}
    create = LanceCreateNamespaceOperator(task_id="create", namespace="radio", **given)
    declare = LanceDeclareTableOperator(task_id="declare", table=RECORDINGS, **given)
    # [START howto_blob_columns]
    ingest = LanceAppendOperator(
        task_id="ingest",
        table=RECORDINGS,
        source=files,
        op_kwargs={"folder": record()},
        options={"blob_columns": ["sound"]},
        spark_conf=SPARK,
        **given,
    )
    # [END howto_blob_columns]
    create >> declare >> ingest
    durations(ingest.output)
