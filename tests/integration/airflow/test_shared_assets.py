"""One asset of a table that tasks change through several connections with one asset authority."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_lancens.assets.lineage import name_of_table
from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.lineage import task_lineage
from airflow_provider_lancens.lineage.task_lineage import TableWrite, TaskLineage
from airflow_provider_lancens.operators.delete_rows import LanceDeleteOperator
from airflow_provider_lancens.operators.taskflow import BlockExecution
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.ui.catalog import uri_of
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.tables import Table

Ended = tuple[OutletEventAccessors, Any]
CONNECTIONS = ("lake_etl", "lake_admin")


@pytest.fixture(params=CONNECTIONS)
def shared(
    request: pytest.FixtureRequest, metastore: MetastoreServer, connect: Callable[..., str], tmp_path: Path
) -> str:
    """The id of one of two connections to the metastore, whose tables have the same assets."""
    extra = {"root": str(tmp_path), "asset_authority": "lake"}
    return connect(str(request.param), host=metastore.uri, extra=extra)


def delete(table: Table, conn_id: str, *outlets: Any, run_id: str = "manual__1", **arguments: Any) -> Ended:
    """Run a task that deletes all rows; return its asset events and its outlets at its end."""
    events = OutletEventAccessors()
    task = LanceDeleteOperator(
        task_id="delete",
        table=str(table),
        lance_conn_id=conn_id,
        where="n >= 0",
        outlets=outlets,
        **arguments,
    )
    context: Any = {"ti": Attempt(), "run_id": run_id, "outlet_events": events}
    task.execute(context)
    return events, task.outlets


def test_a_task_updates_the_one_asset_through_each_connection(table: Table, shared: str) -> None:
    table.declare()
    table.advance()
    asset, alias = lance_table(str(table), "lake"), AssetAlias("written")

    events, _ = delete(table, shared, asset, alias)

    assert events[asset].extra["version"] == 2
    [of_alias] = events[alias].asset_alias_events
    assert (of_alias.dest_asset_key.uri, of_alias.extra["version"]) == (asset.uri, 2)
    assert uri_of(LanceHook(shared), str(table)) == asset.uri


def test_a_task_that_skips_emits_no_event_through_each_connection(table: Table, shared: str) -> None:
    table.declare()
    table.advance()
    asset = lance_table(str(table), "lake")
    delete(table, shared, asset, key="once")
    table.advance()

    _, outlets = delete(table, shared, asset, key="once", on_existing_key="skip", run_id="manual__2")

    assert outlets == []


def test_a_write_of_a_function_updates_the_asset(table: Table, shared: str) -> None:
    asset, events = lance_table(str(table), "lake"), OutletEventAccessors()
    task = SimpleNamespace(outlets=[asset])
    instance = SimpleNamespace(xcom_push=lambda *_: None)
    written = WriteResult(
        table=str(table), operation="append", outcome="done", version=3, previous_version=2, seconds=0.1
    )

    context: Any = {"task": task, "ti": instance, "outlet_events": events}
    BlockExecution(LanceHook(shared), context).report(TableId.parse(str(table)), written)

    assert events[asset].extra["version"] == 3


def test_lineage_names_the_asset_that_the_outlets_have(
    table: Table, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_lineage, "is_enabled", lambda: True)
    hook, written = LanceHook(shared), TableId.parse(str(table))

    noted = TaskLineage.noted(hook, hook.get_conn(), TableWrite(written, None, None, True))

    assert noted is not None
    assert noted.assets == {lance_table(str(table), "lake").uri}
    assert noted.names == {written: name_of_table(hook, written)}
