"""Messages of a real Kafka, brought to Lance by the example, run by Airflow itself."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.spark.lance_catalog import connect
from tests.e2e.dag_run import TREE, DagRunner, dag_run
from tests.pyspark_versions import has_kafka_source
from tests.servers.kafka import KafkaBroker, kafka_broker
from tests.servers.maven import jars_of

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900), has_kafka_source]

EXAMPLE = TREE / "example_dags" / "bring_kafka.py"
SENT, LATER, AT_ONCE = 1000, 50, 100
KILLED_AFTER = 2
"""Epochs of the first run, which has ten."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    (tmp_path / "kafka").mkdir()
    with kafka_broker(tmp_path / "kafka") as running:
        yield running


@pytest.fixture
def environment(airflow_home: dict[str, str], broker: KafkaBroker, tmp_path: Path) -> dict[str, str]:
    jars = jars_of(TREE / "tests" / "servers" / "spark-kafka-4.2.xml")
    lake = {"conn_type": "lance", "extra": {"root": str(tmp_path / "lake")}}
    return {
        **airflow_home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLE.parent),
        "AIRFLOW_CONN_LAKE": json.dumps(lake),
        "AIRFLOW_VAR_CHECKPOINTS": str(tmp_path / "checkpoints"),
        "AIRFLOW_VAR_KAFKA_JARS": ",".join(map(str, sorted(jars.iterdir()))),
        "AIRFLOW_VAR_KAFKA_SERVERS": broker.servers,
    }


def test_messages_come_to_lance_once_each_though_a_run_is_killed(
    broker: KafkaBroker, environment: dict[str, str], tmp_path: Path
) -> None:
    committed = tmp_path / "checkpoints" / "shop.orders" / "commits"
    broker.send("orders", orders(0, SENT))

    with dag_run(EXAMPLE, {"at_once": AT_ONCE}, environment) as killed:
        while not (committed / str(KILLED_AFTER - 1)).exists():
            assert killed.is_running(), killed.log
            time.sleep(0.05)
        killed.signal(signal.SIGKILL)
    before = len(rows(tmp_path))
    runner = DagRunner(environment)

    def run() -> dict[str, Any]:
        started = runner.start(EXAMPLE, {"at_once": AT_ONCE}, {})
        tasks = started.result()
        assert {task["state"] for task in tasks.values()} == {"success"}, started.log
        brought: dict[str, Any] = tasks["bring_orders"]["xcom"]
        return brought

    try:
        rest, nothing = run(), run()
        broker.send("orders", [*orders(SENT, LATER), ("unknown", "no JSON")])
        later = run()
    finally:
        runner.stop()

    assert 0 < before < SENT
    assert rest["epochs"] > 1
    assert (nothing["outcome"], nothing["inserted"], nothing["version"]) == ("unchanged", 0, rest["version"])
    assert (later["outcome"], later["inserted"]) == ("done", LATER + 1)
    *found, unknown = rows(tmp_path)
    assert (unknown["id"], unknown["price"]) == (None, None)
    assert [(row["id"], row["price"]) for row in found] == [(n, n / 2) for n in range(SENT + LATER)]
    assert len({(row["partition"], row["offset"]) for row in found}) == SENT + LATER
    assert {row["partition"] for row in found} == {0, 1}


def orders(first: int, count: int) -> Iterator[tuple[str, str]]:
    for number in range(first, first + count):
        yield str(number), json.dumps({"id": number, "price": number / 2})


def rows(folder: Path) -> list[dict[str, Any]]:
    with closing(connect("dir", {"root": str(folder / "lake")})) as lake:
        found: list[dict[str, Any]] = lake.table("shop.orders").to_arrow().to_pylist()
        return sorted(found, key=lambda row: (row["id"] is None, row["id"]))
