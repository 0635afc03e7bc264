"""New York's flights of 2013 and their weather, a month at a time.

Each run ingests one month of both into Lance tables, waits until the tables' versions have advanced, and
joins exactly these versions into a third table. A month that is ingested again replaces its rows.
The tables are assets: `lance_worst_delays` runs whenever a month was joined.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, task
from nycflights.months import MONTHS, first_missing
from nycflights.spark_sources import delays_of_month, landed_file
from nycflights.tables import DATABASE, TABLES, months_done

from airflow_provider_lancens.assets import lance_table
from airflow_provider_lancens.operators import (
    LanceCreateNamespaceOperator,
    LanceDeclareTableOperator,
    LanceOverwriteOperator,
)
from airflow_provider_lancens.sensors import LanceTableVersionSensor

try:
    from airflow.sdk.exceptions import AirflowSkipException
except ImportError:  # Airflow 3.1
    from airflow.exceptions import AirflowSkipException

CONNECTION = "lance_flights"
LANDING = "{{ var.value.get('lance_flights_landing', '/tmp/lance_flights') }}"
SPARK = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
PATIENCE = {"retries": 5, "retry_delay": timedelta(seconds=10), "retry_exponential_backoff": True}
IN_MONTH = "month = {{ ti.xcom_pull('choose_month')[-2:] | int }}"
WHICH_MONTH = "Leave empty for the first month that is not ingested yet."


@task
def choose_month(params: dict[str, Any]) -> str:
    """Return the requested month, or the first month that isn't done."""
    from airflow_provider_lancens.hooks import LanceHook

    month: str | None = params["month"]
    if month is None:
        month = first_missing(months_done(LanceHook.for_connection(CONNECTION).get_conn()))
    if month is None:
        raise AirflowSkipException(
            "All months of 2013 are ingested: enter a month to load it again, which replaces its rows."
        )
    return month


@task
def land(table: str, month: str, folder: str) -> str:
    """Put one month of raw data where Spark can read it."""
    from nycflights.landing import land as land_file

    return str(land_file(table, month, Path(folder)))


with DAG(
    dag_id="lance_flights",
    schedule=None,
    max_active_runs=1,  # so that each run without a month ingests another one
    params={"month": Param(None, type=["null", "string"], enum=[None, *MONTHS], description_md=WHICH_MONTH)},
    default_args={"lance_conn_id": CONNECTION, **PATIENCE},
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create_namespace = LanceCreateNamespaceOperator(task_id="create_namespace", namespace=DATABASE)
    declared = [
        LanceDeclareTableOperator(task_id=f"declare_{name}", table=table) for name, table in TABLES.items()
    ]
    month = choose_month()
    create_namespace >> declared >> month

    # The key identifies a month, regardless of the run that ingests it.
    def ingest(name: str, source: Callable[..., Any], **arguments: Any) -> LanceOverwriteOperator:
        return LanceOverwriteOperator(
            task_id=f"ingest_{name}",
            table=TABLES[name],
            source=source,
            where=IN_MONTH,
            key=f"{name} of {month}",
            spark_conf=SPARK,
            outlets=[lance_table(TABLES[name], CONNECTION)],
            **arguments,
        )

    def arrival(name: str) -> LanceTableVersionSensor:
        """Land and ingest one table's raw data, and wait for its version."""
        file = land.override(task_id=f"land_{name}")(name, month, LANDING)
        ingested = ingest(name, landed_file, op_kwargs={"file": file})
        return LanceTableVersionSensor(
            task_id=f"wait_for_{name}",
            table=TABLES[name],
            min_version=ingested.output["version"],
            poke_interval=5,
        )

    versions = {name: arrival(name).output for name in ("flights", "weather")}
    ingest("delays", delays_of_month, inputs=versions, op_kwargs={"month": month})
