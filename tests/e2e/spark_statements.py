"""Run SQL statements by a Spark session of its own: Spark's configuration and a list of them as JSON."""

import json
import sys

from airflow_provider_lancens.spark.session import spark_session

conf, statements = map(json.loads, sys.argv[1:])
with spark_session("statements", conf) as spark:
    for statement in statements:
        spark.sql(statement)
