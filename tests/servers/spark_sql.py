"""Spark SQL on a Hive Metastore without any Lance libraries, in a separate process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 280
SESSION = """
import json, sys
from pyspark.sql import SparkSession

uri, warehouse, *statements = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").enableHiveSupport()
settings = {
    "spark.hadoop.hive.metastore.uris": uri,
    "spark.sql.warehouse.dir": warehouse,
    "spark.driver.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
spark = builder.config(map=settings).getOrCreate()
for statement in statements:
    try:
        answer = {"rows": spark.sql(statement).collect()}
    except Exception as error:
        answer = {"error": str(error)}
    print("answer:", json.dumps(answer))
"""


def run_sql(uri: str, folder: Path, *statements: str) -> list[dict[str, Any]]:
    """Run statements on the metastore at `uri` in turn; return the ``rows`` or ``error`` of each."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION, uri, str(folder / "warehouse"), *statements],
        cwd=folder,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line.partition("answer: ")[2] for line in done.stdout.splitlines()]
    return [json.loads(line) for line in lines if line]
