"""Create Hive tables with Spark, and bring them to Lance, in a process of its own; print the rows as JSON.

A process has one kind of catalog for all its sessions. Arguments: the Airflow connection, the database of the
Hive tables, its folder, and further Spark configuration as JSON.
"""

import json
import sys
from contextlib import closing

from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.hooks.airflow_errors import airflow_errors
from airflow_provider_lancens.hooks.spark_connection import SparkDeployment
from airflow_provider_lancens.spark.session import opened_session

CREATED = """
CREATE DATABASE {database} LOCATION '{folder}/hive';
CREATE TABLE {database}.facts (
  id INT, amount DECIMAL(10,2), at TIMESTAMP, day DATE, code CHAR(4), name VARCHAR(8),
  tags ARRAY<STRING>, scores MAP<STRING, INT>, place STRUCT<x: DOUBLE, y: DOUBLE>
) STORED AS PARQUET;
INSERT INTO {database}.facts VALUES (
  1, 1.5, TIMESTAMP'2026-01-01 01:02:03', DATE'2026-01-02', 'ab', 'cd',
  ARRAY('a', NULL), MAP('k', 1), NAMED_STRUCT('x', 0.5, 'y', 1.5)
), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE {database}.events (id INT, kind STRING) PARTITIONED BY (day DATE, shop STRING) STORED AS ORC;
SET hive.exec.dynamic.partition.mode=nonstrict;
INSERT INTO {database}.events PARTITION (day, shop) VALUES
  (1, 'in', DATE'2026-01-01', 'a b'), (2, 'out', DATE'2026-01-02', '0042'), (3, 'in', NULL, 'a=b');
CREATE TABLE {database}.plain (id BIGINT, name STRING) STORED AS TEXTFILE;
INSERT INTO {database}.plain VALUES (1, 'x')
"""
TABLES = ("facts", "events", "plain")


def main(conn_id: str, database: str, folder: str, conf: str) -> None:
    with closing(LanceHook(conn_id)) as hook:
        given = {"spark.sql.warehouse.dir": f"{folder}/warehouse", **json.loads(conf)}
        deployment = SparkDeployment.of(None, given).with_hive_tables(hook)
        with airflow_errors("opening a Spark session"), opened_session("bring", deployment.conf) as opened:
            spark = opened.spark
            for statement in CREATED.format(database=database, folder=folder).split(";"):
                spark.sql(statement)
            lake = hook.catalog(spark=spark)
            target = f"hive.{database}_lance" if hook.conn_type == "lance_hive3" else f"{database}_lance"
            lake.create_namespace(target)
            rows = {}
            for name in TABLES:
                table = lake.declare_table(f"{target}.{name}")
                table.append(spark.table(f"{database}.{name}"))
                rows[name] = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    print(json.dumps(rows, default=str))  # noqa: T201 the result


main(*sys.argv[1:])
