"""The hourly maintenance of `lance_maintain_hourly`, for two more tables every few minutes."""

import json
import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_lancens.operators import LanceMaintainOperator

TABLES = json.loads(os.environ["LANCE_TEST_TABLES"])
SECONDS = int(os.environ["LANCE_TEST_MAINTENANCE_SECONDS"])
PAIR = f"(dag_run.run_after.timestamp() // {SECONDS}) | int % {len(TABLES) // 2}"

with DAG(
    "soak_maintain",
    schedule=timedelta(seconds=SECONDS),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"lance_conn_id": "lake", "retries": 2, "retry_delay": timedelta(seconds=5)},
    user_defined_macros={"tables": TABLES},
) as dag:
    first, second = (
        LanceMaintainOperator(
            task_id=f"maintain_{number}",
            table=f"{{{{ tables[2 * ({PAIR}) + {number}] }}}}",
            indices=[{"column": "n", "index_type": "BITMAP"}],
            older_than=timedelta(minutes=5),
            keep_versions=10,
            min_small_fragments=2,
            min_removable_versions=1,
            spark_conf={"spark.master": "local[1]"},
        )
        for number in range(2)
    )
    first >> second
