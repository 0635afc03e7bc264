"""Tables that tasks wait for and that don't exist."""

from types import SimpleNamespace
from typing import Any

from airflow_provider_lancens.doctor.checks import missing_tables
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus


def test_a_table_that_does_not_exist_is_told_with_a_task_that_waits_for_it() -> None:
    misspelt, declared = TableId.parse("sales$ordres"), TableId.parse("sales$orders")
    found = {misspelt: TableStatus(misspelt), declared: TableStatus(declared, "/lake/orders")}
    hook: Any = SimpleNamespace(poll_tables=lambda tables: found)

    [finding] = missing_tables(hook, {misspelt: "task 'wait' of 'daily'", declared: "task 'wait' of 'daily'"})

    assert str(finding).startswith(
        "WARNING table sales$ordres: it does not exist, and task 'wait' of 'daily' has been waiting"
    )
