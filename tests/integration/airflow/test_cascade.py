"""Dropping a namespace with its contents: only what is in the plan and allowed is dropped."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import LanceNamespace, ListTablesRequest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.namespaces import LanceDropNamespaceOperator
from tests.conformance.foreign import make_foreign_table
from tests.integration.airflow.lifecycle import Attempt
from tests.integration.airflow.tables import Table
from tests.support.backends import Backend

Run = Callable[..., Any]
DROPPED = {"operation": "drop_namespace"}


@pytest.fixture
def foreign(metastore: MetastoreServer, table: Table, tmp_path: Path) -> str:
    """The id of a foreign table, in a database that also has a Lance table."""
    table.declare()
    server = Backend("a metastore", "Hive2Namespace", {"uri": metastore.uri, "root": str(tmp_path)})
    make_foreign_table(server, [table.database], "others")
    return f"{table.database}$others"


def plan(table: Table, *foreign: str) -> dict[str, Any]:
    return {
        "namespaces": [table.database],
        "lance_tables": [str(table)],
        "foreign_tables": list(foreign),
        "lance_table_count": 1,
        "foreign_table_count": len(foreign),
    }


def test_a_dry_run_only_plans(run: Run, table: Table, foreign: str, attempt: Attempt) -> None:
    found = run(
        LanceDropNamespaceOperator,
        namespace=table.database,
        cascade=True,
        foreign_tables=["*"],
        dry_run=True,
    )
    assert found == {
        **DROPPED,
        "namespace": table.database,
        "outcome": "planned",
        "plan": plan(table, foreign),
    }
    assert attempt.pushed["plan"] == found["plan"]
    table.namespace.table_exists({"id": table.id})


@pytest.mark.parametrize(
    ("given", "said"), [({"cascade": True}, "not Lance.*{}"), ({}, "is not empty: it contains .*{}")]
)
def test_a_dry_run_fails_where_the_drop_would_after_its_plan_was_logged(
    run: Run, table: Table, foreign: str, attempt: Attempt, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(AirflowFailException, match=said.format(re.escape(foreign))):
        run(LanceDropNamespaceOperator, namespace=table.database, dry_run=True, **given)
    assert attempt.pushed["plan"] == plan(table, foreign)
    table.namespace.table_exists({"id": table.id})


def test_a_table_created_after_the_plan_was_pushed_is_kept_and_fails_the_task(
    lake: str, table: Table, namespace: LanceNamespace
) -> None:
    class Pushed(Attempt):
        def xcom_push(self, key: str, value: Any) -> None:
            Table(namespace, table.database, "late").declare()

    table.declare()
    drop = LanceDropNamespaceOperator(
        task_id="drop", lance_conn_id=lake, namespace=table.database, cascade=True
    )
    with pytest.raises(AirflowFailException, match=r"changed since the drop was planned.*late \(new\)"):
        drop.execute({"ti": Pushed()})
    assert namespace.list_tables(ListTablesRequest(id=[table.database])).tables == ["late", "orders"]


def test_a_dry_run_of_a_missing_namespace_plans_nothing(run: Run, database: str) -> None:
    found = run(LanceDropNamespaceOperator, namespace=database, dry_run=True, if_missing="skip")
    assert found == {**DROPPED, "namespace": database, "outcome": "unchanged"}


def test_a_foreign_table_stops_a_cascade_after_its_plan_was_logged(
    run: Run, table: Table, foreign: str, attempt: Attempt
) -> None:
    with pytest.raises(AirflowFailException, match=f"not Lance.*{re.escape(foreign)}"):
        run(LanceDropNamespaceOperator, namespace=table.database, cascade=True)
    assert attempt.pushed["plan"] == plan(table, foreign)
    table.namespace.table_exists({"id": table.id})


@pytest.mark.parametrize("text", ["*", "['sales$legacy']"])
def test_a_string_is_refused_as_list_of_foreign_tables(
    run: Run, table: Table, foreign: str, text: str
) -> None:
    with pytest.raises(AirflowFailException, match=r"foreign_tables: .*a list of identifiers"):
        run(LanceDropNamespaceOperator, namespace=table.database, cascade=True, foreign_tables=text)
    table.namespace.table_exists({"id": table.id})


@pytest.mark.parametrize("allowed", ["by name", "any"])
def test_allowed_foreign_tables_are_dropped(run: Run, table: Table, foreign: str, allowed: str) -> None:
    named = [foreign] if allowed == "by name" else ["*"]
    dropped = run(LanceDropNamespaceOperator, namespace=table.database, cascade=True, foreign_tables=named)
    assert dropped == {
        **DROPPED,
        "namespace": table.database,
        "outcome": "done",
        "plan": plan(table, foreign),
    }
