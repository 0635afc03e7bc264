"""Append a Hive table by spark-submit: the table, the Lance table, and Spark's configuration as JSON."""

import json
import sys

from tests.integration.spark.run_twice import context_of
from tests.integration.spark.submit.ingestion_sources import table_of
from tests.integration.spark.submit.run_ingestion import Submitted

source, table, conf = sys.argv[1:]
task = Submitted(
    task_id="ingest",
    lance_conn_id="lake",
    spark_conn_id="here",
    source=table_of,
    op_kwargs={"name": source},
    table=table,
    hive_tables=True,
    spark_conf=json.loads(conf),
)
task.execute(context_of(task, 1))
