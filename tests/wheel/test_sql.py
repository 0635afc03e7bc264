"""`wheel[sql]`: a check of a table in a folder, by the DuckDB that is the newest and by the lowest one."""

import json
from pathlib import Path

import pytest

from tests.support.installed_packages import Installed, on_each_python

# Each change installs the wheel alone, and with Spark.
pytestmark = pytest.mark.long

CHECKED = """
import os, sys, json
import lance
import pyarrow as pa
from datetime import UTC, datetime
root = sys.argv[1]
os.environ["AIRFLOW_CONN_LAKE"] = json.dumps({"conn_type": "lance", "extra": {"root": root}})
moment = pa.array([datetime(2026, 1, 5, tzinfo=UTC)], pa.timestamp("us", "UTC"))
lance.write_dataset(pa.table({"id": [1], "moment": moment}), f"{root}/orders.lance")
from airflow.providers.common.sql.operators.sql import SQLColumnCheckOperator
checks = {"id": {"min": {"equal_to": 1}}, "moment": {"max": {"equal_to": datetime(2026, 1, 5, tzinfo=UTC)}}}
given = {"conn_id": "lake", "table": "orders", "column_mapping": checks}
SQLColumnCheckOperator(task_id="check", **given).execute({})
import duckdb
print(json.dumps(duckdb.__version__))
"""


@on_each_python("sql")
def test_a_table_is_checked(installed: Installed, tmp_path: Path) -> None:
    printed = installed.run("-c", CHECKED, tmp_path).splitlines()[-1]
    assert json.loads(printed) >= "1.5"
