"""Tables of a database that aren't Lance's: their format, and why Spark can't read one."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.support.hive_databases import drop_all
from tests.support.hive_tables import hive_database

ROWS = pa.table({"id": pa.array([1, 2], pa.int32()), "day": ["a", None]})
ENTRIES: dict[str, dict[str, Any]] = {
    "a_view": {"table_type": "VIRTUAL_VIEW"},
    "delta": {"kind": "text", "spark.sql.sources.provider": "DELTA"},
    "iceberg": {"table_type": "EXTERNAL_TABLE", "TABLE_TYPE": "ICEBERG"},
    "odd": {"serde": "com.example.OddSerDe"},
    "of_spark": {"kind": "text", "spark.sql.sources.provider": "json"},
    "of_hbase": {"serde": "com.example.S", "storage_handler": "com.example.Handler"},
    "of_jdbc": {"serde": "com.example.S", "spark.sql.sources.provider": "jdbc"},
}


def test_each_foreign_table_is_listed_with_its_format_or_its_obstacle(
    server: MetastoreServer, connect: Any, tmp_path: Path, database: str
) -> None:
    root = {"root": str(tmp_path / "lake")}
    with hive_database(server.uri, database, tmp_path / "hive") as hive:
        hive.create("events", ROWS, "orc", partitioned_by=["day"])
        hive.create("orders", ROWS)
        hive.create("plain", ROWS, "text")
        for name, entry in ENTRIES.items():
            hive.create_entry(name, **entry)
    with Hive2Namespace(uri=server.uri, **root) as namespace:
        namespace.declare_table({"id": [database, "ours"]})

        found = LanceHook(connect(host=server.uri, extra=root)).list_foreign_tables(database)

        drop_all(namespace, database)
    told = {one.name: (one.format, one.partitioned_by, one.obstacle) for one in found}
    assert told == {
        "a_view": (None, (), "is a view"),
        "delta": ("delta", (), "is a Delta table, which Spark reads with the jars of that format"),
        "events": ("orc", ("day",), None),
        "iceberg": ("iceberg", (), "is an Iceberg table, which Spark reads with the jars of that format"),
        "odd": (None, (), "has the SerDe com.example.OddSerDe, which Spark doesn't have"),
        "of_hbase": (None, (), "has the storage handler com.example.Handler"),
        "of_jdbc": (None, (), "has Spark's provider jdbc"),
        "of_spark": ("json", (), None),
        "orders": ("parquet", (), None),
        "plain": ("text", (), None),
    }
    assert list(told) == sorted(told)


def test_a_missing_database_and_another_kind_of_connection_are_refused(
    metastore: MetastoreServer, connect: Any, tmp_path: Path, database: str
) -> None:
    root = {"root": str(tmp_path)}
    with pytest.raises(AirflowFailException, match=rf"tables of '{database}' through .*\(code 1, "):
        LanceHook(connect(host=metastore.uri, extra=root)).list_foreign_tables(database)
    with pytest.raises(AirflowFailException, match="has type lance; expected lance_hive2, lance_hive3"):
        LanceHook(connect("folder", "lance", extra=root)).list_foreign_tables(database)
