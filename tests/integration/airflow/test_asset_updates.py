"""Asset events of tasks that write a table or advance its version."""

from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.operators.version_authority import LanceAdvanceVersionOperator
from tests.integration.airflow.tables import Table


def test_an_advanced_version_updates_the_tables_asset(lake: str, table: Table, tmp_path: Path) -> None:
    location = table.declare()
    table.advance()
    with closing(LanceHook.for_connection(lake)) as hook:
        hook.get_conn().convert_table(table.id, managed_by="impl")
    lance.write_dataset(pa.table({"n": [1]}), location, mode="append")
    asset = lance_table(str(table), lake)
    events = OutletEventAccessors()

    LanceAdvanceVersionOperator(
        task_id="advance",
        table=str(table),
        lance_conn_id=lake,
        expected_version=1,
        version=2,
        outlets=[asset],
    ).execute({"outlet_events": events})  # type: ignore[typeddict-item]

    versions = {"previous_version": 1, "version": 2}
    at = {"operation": "advance", "location": location}
    assert events[asset].extra == {"table": str(table), **at, **versions}
