"""Embeddings: compute vectors of images on Spark, index them, and search at the version that has both.

The images are the 1,797 handwritten digits, of 8 by 8 pixels, included in scikit-learn. Their embedding is
computed without a network: the 16 principal components of the pixels.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import DAG, task

from airflow_provider_lancens.operators import (
    LanceCreateIndexOperator,
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceReleaseVersionOperator,
    LanceSparkIngestOperator,
)
from airflow_provider_lancens.sensors import LanceTableVersionSensor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECTION = "lake"
DIGITS = "images$digits"
DIMENSION = 16
NEIGHBORS = 5
POLL_SECONDS = float(os.environ.get("LANCE_EXAMPLE_POLL", "60"))
SPARK = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}


# [START howto_embed]
def embedded_digits(spark: SparkSession, dimension: int) -> DataFrame:
    """Return each image's number, the digit that it shows, and its embedding."""
    from importlib.metadata import distribution

    from pyspark.ml.feature import PCA, VectorAssembler
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions as sql

    file = distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")
    pixels = [f"pixel_{number}" for number in range(64)]
    images = spark.read.csv(str(file), schema=", ".join(f"{name} double" for name in [*pixels, "digit"]))
    gathered = VectorAssembler(inputCols=pixels, outputCol="pixels").transform(images)
    model = PCA(k=dimension, inputCol="pixels", outputCol="components").fit(gathered)
    return (
        model.transform(gathered)
        .select(
            sql.monotonically_increasing_id().alias("image"),
            sql.col("digit").cast("int"),
            vector_to_array("components", "float32").alias("embedding"),
        )
        .repartition(4)
    )


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
    embed = LanceSparkIngestOperator(
        task_id="embed",
        table=DIGITS,
        source=embedded_digits,
        op_kwargs={"dimension": DIMENSION},
        idempotency_key=f"digits by {DIMENSION} components",  # the same in every run: ingested once
        options={"vector_columns": {"embedding": DIMENSION}},
        spark_conf=SPARK,
    )
    index = LanceCreateIndexOperator(
        task_id="index",
        table=embed.output["table"],
        column="embedding",
        index_type="IVF_PQ",
        options={"num_partitions": 8, "num_sub_vectors": 8},
        spark_conf=SPARK,
    )
    wait = LanceTableVersionSensor(
        task_id="wait",
        table=DIGITS,
        min_version=index.output["version"],
        pin=True,  # protects the version from clean-up while it is searched
        poke_interval=POLL_SECONDS,
    )
    release = LanceReleaseVersionOperator(task_id="release", table=DIGITS, tag=wait.output["tag"])
    look_alikes(wait.output) >> release.as_teardown(setups=wait)
    # [END howto_index]
    create >> declare >> embed
