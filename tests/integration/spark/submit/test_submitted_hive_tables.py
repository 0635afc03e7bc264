"""Hive tables of the connection's metastore, read by a driver that spark-submit starts."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark.hive_tables import METASTORE, URIS
from airflow_provider_lancens.spark.lance_catalog import connect as connect_catalog
from tests.support.hive_tables import hive_database

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

RUN = "tests.integration.spark.submit.run_hive_ingestion"


def test_a_submitted_driver_reads_hive_tables_or_says_why_not(
    metastore: MetastoreServer, connect: Callable[..., str], database: str, tmp_path: Path
) -> None:
    connect(host=metastore.uri, extra={"root": str(tmp_path)})
    connect("here", "spark", host="local[1]")
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "shop": ["a", None]})
    with connect_catalog("hive2", {"uri": metastore.uri, "root": str(tmp_path)}) as lake:
        lake.create_namespace(f"{database}_lance")
        orders = lake.declare_table(f"{database}_lance.orders")
        with hive_database(metastore.uri, database, tmp_path / "hive") as hive:
            hive.create("orders", rows)
            nowhere = {URIS: "thrift://127.0.0.1:9", f"{METASTORE}client.connect.retry.delay": "0"}
            refused = ingest(f"{database}.orders", orders.name, **nowhere)
            done = ingest(f"{database}.orders", orders.name)

        assert done.returncode == 0, done.stdout + done.stderr
        assert orders.to_arrow().sort_by("id") == rows
    assert refused.returncode
    assert (
        "Spark can't read the tables of the metastore thrift://127.0.0.1:9" in refused.stdout + refused.stderr
    )


def ingest(source: str, table: str, **conf: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", RUN, source, table, json.dumps(conf)],
        cwd=Path(__file__).parents[4],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
