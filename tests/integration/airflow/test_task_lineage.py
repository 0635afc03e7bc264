"""What tasks without Spark report to OpenLineage, after they ran on tables of a real metastore."""

import json
import logging
import os
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.lineage import task_lineage
from airflow_provider_lancens.lineage.task_lineage import LineageColumn
from airflow_provider_lancens.operators import (
    LanceAlterTableOperator,
    LanceDeleteOperator,
    LanceRestoreOperator,
)
from airflow_provider_lancens.operators.lance_operator import LanceOperator
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.lineage import reported
from tests.integration.airflow.tables import Table

Run = Callable[..., LanceOperator]
ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int32()), "price": [1.5, None, 2.0]})
FIELDS = [{"name": "n", "type": "int32", "fields": []}, {"name": "price", "type": "double", "fields": []}]


@pytest.fixture
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport is configured for Airflow's OpenLineage provider."""
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps({"type": "console"}))


@pytest.fixture
def orders(table: Table) -> Table:
    """A managed table of three orders."""
    table.declare(managed_by="impl")
    lance.write_dataset(ROWS, namespace_client=table.namespace, table_id=table.id, mode="append")
    return table


@pytest.fixture
def run(lake: str, orders: Table) -> Run:
    """Run an operator's task, and return the operator."""

    def execute(operator: type[LanceOperator], run_id: str = "manual__1", **arguments: Any) -> LanceOperator:
        outlets = [lance_table(str(orders), lake)]
        given = {"table": str(orders), "lance_conn_id": lake, "outlets": outlets, **arguments}
        task = operator(task_id="task", **given)
        context: Any = {"ti": Attempt(), "run_id": run_id, "outlet_events": OutletEventAccessors()}
        task.execute(context)
        return task

    return execute


@pytest.mark.usefixtures("enabled")
def test_a_deletion_reports_the_version_its_schema_and_the_deleted_rows(
    run: Run, orders: Table, metastore: MetastoreServer
) -> None:
    inputs, outputs = reported(run(LanceDeleteOperator, where="n >= 2"))

    assert inputs == []
    assert outputs == [
        {
            "namespace": metastore.uri.replace("thrift", "hive"),
            "name": f"{orders.database}.orders",
            "facets": {
                "version": {"datasetVersion": "2"},
                "schema": {"fields": FIELDS},
                "lance_commit": {
                    "committed": True,
                    "published": True,
                    "previousVersion": "1",
                    "deletedRows": 2,
                },
            },
            "outputFacets": {},
        }
    ]


@pytest.mark.usefixtures("enabled")
def test_a_cleared_task_reports_the_version_and_no_rows_again(run: Run) -> None:
    run(LanceDeleteOperator, where="n >= 2")
    _, [output] = reported(run(LanceDeleteOperator, where="n >= 2"))

    assert output["facets"]["version"] == {"datasetVersion": "2"}
    assert output["facets"]["lance_commit"] == {
        "committed": False,
        "published": True,
        "previousVersion": "1",
    }


@pytest.mark.usefixtures("enabled")
def test_a_change_of_columns_reports_them_and_the_new_schema(run: Run) -> None:
    _, [output] = reported(run(LanceAlterTableOperator, add={"vector": "float[2]"}))
    facets = output["facets"]

    assert [field["name"] for field in facets["schema"]["fields"]] == ["n", "price", "vector"]
    assert facets["lifecycleStateChange"] == {"lifecycleStateChange": "ALTER"}
    assert facets["lance_commit"]["columns"] == ["vector"]


@pytest.mark.usefixtures("enabled")
def test_a_restore_reports_the_restored_version_and_its_columns(run: Run) -> None:
    run(LanceAlterTableOperator, add={"vector": "float[2]"})
    _, [output] = reported(run(LanceRestoreOperator, version=1))
    facets = output["facets"]

    assert facets["schema"] == {"fields": FIELDS}
    assert facets["lifecycleStateChange"] == {"lifecycleStateChange": "OVERWRITE"}
    assert facets["version"] == {"datasetVersion": "3"}
    assert (facets["lance_commit"]["sourceVersion"], facets["lance_commit"]["previousVersion"]) == ("1", "2")


@pytest.mark.usefixtures("enabled")
def test_a_forked_process_can_report_what_its_parent_did(run: Run) -> None:
    task = run(LanceDeleteOperator, where="n >= 2")
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, json.dumps(reported(task)).encode())
        os._exit(0)
    os.close(writer)

    with os.fdopen(reader) as answer:
        assert json.load(answer) == [*map(list, reported(task))]
    os.waitpid(child, 0)


@pytest.mark.usefixtures("enabled")
def test_a_schema_that_cannot_be_read_fails_no_task(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreadable(column: Any) -> LineageColumn:
        raise RuntimeError("no such thing as thrift://me:hush-hush@metastore")

    monkeypatch.setattr(LineageColumn, "of", unreadable)
    with caplog.at_level(logging.WARNING):
        _, [output] = reported(run(LanceDeleteOperator, where="n >= 2"))

    assert output["facets"]["version"] == {"datasetVersion": "2"}
    assert "schema" not in output["facets"]
    assert "at version 2, since its columns cannot be read: RuntimeError: no such" in caplog.text
    assert "hush" not in caplog.text


def test_a_lineage_that_cannot_be_determined_fails_no_task(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_lineage, "is_enabled", lambda: json.loads("not the transport"))

    assert reported(run(LanceDeleteOperator, where="n >= 2")) == ([], [])
    assert "OpenLineage: no lineage of table" in caplog.text


def test_nothing_is_read_without_the_provider(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_lineage, "find_spec", lambda _: None)
    monkeypatch.setattr(LineageColumn, "of", lambda _: pytest.fail("a schema was read"))

    assert reported(run(LanceDeleteOperator, where="n >= 2")) == ([], [])
