"""Embeddings: ingest images, compute vectors of new ones on Spark, index them, search at that version.

The images are the 1,797 handwritten digits, of 8 by 8 pixels, included in scikit-learn. Their embedding is
computed without a network: the 16 principal components of the pixels.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import (
    LanceAppendOperator,
    LanceComputeColumnOperator,
    LanceCreateIndexOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceDeleteTagOperator,
)
from airflow_provider_lancens.sensors import LanceTableVersionSensor

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # Airflow 3.1
    from airflow.exceptions import AirflowFailException

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

CONNECTION = "lake"
DIGITS = "images$digits"
PIXELS = 64
DIMENSION = 16
NEIGHBORS = 5
POLL_SECONDS = float(os.environ.get("LANCE_EXAMPLE_POLL", "60"))
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}


def digits(spark: SparkSession) -> DataFrame:
    """Return each image's number, the digit that it shows, and its pixels."""
    from pyspark.sql import functions as sql

    pixels = [f"pixel_{number}" for number in range(PIXELS)]
    images = spark.read.csv(digits_file(), schema=", ".join(f"{name} float" for name in [*pixels, "digit"]))
    return images.select(
        sql.monotonically_increasing_id().alias("image"),
        sql.col("digit").cast("int"),
        sql.array(*pixels).alias("pixels"),
    ).repartition(4)


def digits_file() -> str:
    """Return the path of the images."""
    from importlib.metadata import distribution

    return str(distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz"))


# [START howto_embed]
def load_model() -> tuple[Any, Any]:
    """Return the mean image and the principal components; called once in each Python worker of Spark."""
    import numpy as np

    pixels = np.loadtxt(digits_file(), delimiter=",", dtype=np.float32)[:, :PIXELS]
    mean = pixels.mean(axis=0)
    components = np.linalg.svd(pixels - mean, full_matrices=False)[2]
    return mean, components[:DIMENSION].T


def embed(batch: pa.RecordBatch, model: tuple[Any, Any]) -> pa.Array:
    """Return the embeddings of a batch of images."""
    import pyarrow as pa

    mean, components = model
    pixels = batch["pixels"].flatten().to_numpy().reshape(-1, PIXELS)
    embeddings = (pixels - mean) @ components
    return pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), DIMENSION)


# [END howto_embed]


# [START howto_nearest]
@task
def look_alikes(arrived: dict[str, Any]) -> dict[str, Any]:
    """Check how often an image's nearest neighbors show the same digit, at exactly the awaited version."""
    import lance

    from airflow_provider_lancens.hooks import LanceHook

    namespace = LanceHook.for_connection(CONNECTION).get_conn()
    name, version = arrived["table"].split("$"), arrived["version"]
    digits = lance.dataset(namespace_client=namespace, table_id=name, version=version)
    asked = digits.to_table(filter="image % 20 = 0").to_pylist()
    same = sum(same_digit(digits, image) for image in asked) / (len(asked) * NEIGHBORS)
    if same < 0.8:
        raise AirflowFailException(f"only {same:.0%} of the neighbors show the same digit: a bad embedding")
    return {"version": version, "asked": len(asked), "same_digit": round(same, 3)}


def same_digit(digits: Any, image: dict[str, Any]) -> int:
    """Return how many of an image's nearest neighbors show its digit."""
    nearest = {"column": "embedding", "q": image["embedding"], "k": NEIGHBORS + 1, "nprobes": 4}
    found = digits.to_table(columns=["image", "digit"], nearest=nearest).to_pylist()
    others = [other for other in found if other["image"] != image["image"]]
    return sum(other["digit"] == image["digit"] for other in others[:NEIGHBORS])


# [END howto_nearest]


with DAG(
    dag_id="lance_embeddings",
    schedule=None,
    default_args={"lance_conn_id": CONNECTION, "retries": 2, "retry_delay": timedelta(seconds=30)},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="images")
    declare = LanceDeclareTableOperator(task_id="declare", table=DIGITS)
    # [START howto_index]
    ingest = LanceAppendOperator(
        task_id="ingest",
        table=DIGITS,
        source=digits,
        key="digits",  # the same in every run
        on_existing_key="skip",  # so they are ingested once
        options={"vector_columns": {"pixels": PIXELS}},
        spark_conf=SPARK,
    )
    # [START howto_compute]
    compute = LanceComputeColumnOperator(
        task_id="compute",
        table=ingest.output["table"],
        column="embedding",
        function=embed,
        columns=["pixels"],
        dtype=f"float[{DIMENSION}]",
        setup=load_model,
        spark_conf=SPARK,
    )
    # [END howto_compute]
    index = LanceCreateIndexOperator(
        task_id="index",
        table=compute.output["table"],
        column="embedding",
        index_type="IVF_PQ",
        if_exists="extend",  # a later run indexes new rows alone
        options={"num_partitions": 8, "num_sub_vectors": 8},
        spark_conf=SPARK,
    )
    # [START howto_wait_for_index]
    wait = LanceTableVersionSensor(
        task_id="wait",
        table=DIGITS,
        min_version=index.output["version"],
        index="embedding_idx",
        pin=True,  # protects the version from clean-up while it is searched
        poke_interval=POLL_SECONDS,
    )
    # [END howto_wait_for_index]
    release = LanceDeleteTagOperator(task_id="release", table=DIGITS, tag=wait.output["tag"])
    look_alikes(wait.output) >> release.as_teardown(setups=wait)
    # [END howto_index]
    create >> declare >> ingest
