"""Load messages of a Kafka topic: each run writes the messages that have arrived since, each of them once.

Spark keeps in the checkpoint which offsets it has read. A run that is killed is continued by the next one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceStreamOperator,
)

LAKE = {"lance_conn_id": "lake"}


# [START howto_bring_kafka]
def orders_of(spark: Any, servers: str, at_once: str) -> Any:
    """Return what is in the messages' JSON, and where in the topic each message is."""
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", at_once)
        .load()
    )
    parsed = "from_json(CAST(value AS STRING), 'id BIGINT, price DOUBLE') AS sent"
    return messages.selectExpr("partition", "offset", "timestamp", parsed).select(
        "partition", "offset", "timestamp", "sent.*"
    )


# [END howto_bring_kafka]


with DAG(
    dag_id="lance_bring_kafka",
    schedule=timedelta(minutes=15),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params={"at_once": Param(1_000_000, type="integer")},
    default_args={"retries": 2},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace="shop", **LAKE)
    declare = LanceDeclareTableOperator(task_id="declare", table="shop.orders", **LAKE)
    # [START howto_bring_kafka_operator]
    bring_orders = LanceStreamOperator(
        task_id="bring_orders",
        table="shop.orders",
        source=orders_of,
        op_kwargs={"servers": "{{ var.value.kafka_servers }}", "at_once": "{{ params.at_once }}"},
        checkpoint="{{ var.value.checkpoints }}/shop.orders",
        spark_conf={"spark.jars": "{{ var.value.kafka_jars }}"},
        **LAKE,
    )
    # [END howto_bring_kafka_operator]
    create >> declare >> bring_orders
