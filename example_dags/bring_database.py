"""Copy a whole Hive database to Lance by one mapped task for each table, and report why others are skipped.

The run may be killed and continued at any point: complete tables are skipped, and incomplete tables are
written under the same key. A later run brings tables that are new since.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.operators import LanceCreateNamespaceOperator

# [START howto_bring_database]
FROM, TO = "sales", "sales_lance"
LAKE = {"lance_conn_id": "lake"}


@task
def plan(ti: Any = None) -> list[str]:
    """Return the tables to bring; its XCom `skipped` says of each other one why it isn't brought."""
    hook = LanceHook("lake")
    lake = hook.catalog()
    tables, skipped = [], {}
    for found in hook.list_foreign_tables(FROM):
        target = f"{TO}.{found.name}"
        if found.obstacle:
            skipped[found.name] = found.obstacle
        elif lake.table_exists(target) and lake.table(target).version:
            skipped[found.name] = f"exists already, as {target}"
        else:
            tables.append(found.name)
    for name, reason in skipped.items():
        print(f"skipped: {FROM}.{name} {reason}")
    ti.xcom_push(key="skipped", value=skipped)
    return tables


@task.lance_spark(
    hive_tables=True,
    map_index_template="{{ task.op_kwargs['name'] }}",
    retries=2,
    max_active_tis_per_dagrun=4,
    **LAKE,
)
def bring(name: str, lake: Any = None) -> dict[str, Any]:
    """Bring a table; a key that names it alone, so that any later run finds what was written."""
    table = lake.declare_table(f"{TO}.{name}")
    return table.overwrite(lake.spark.table(f"{FROM}.{name}"), key=f"bring {FROM}.{name}").as_dict()


with DAG(
    dag_id="lance_bring_database",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    tags=["lance", "example"],
    doc_md=__doc__,
) as dag:
    create = LanceCreateNamespaceOperator(task_id="create", namespace=TO, **LAKE)
    tables = plan()
    create >> tables
    bring.expand(name=tables)
# [END howto_bring_database]
