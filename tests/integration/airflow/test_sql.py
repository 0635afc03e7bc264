"""Airflow's SQL operators on tables of a metastore, of both version authorities."""

from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.sql.operators.sql import SQLCheckOperator, SQLTableCheckOperator

from airflow_provider_lancens.hooks.airflow_errors import AirflowException, AirflowFailException
from airflow_provider_lancens.operators import LanceFindVersionOperator
from tests.integration.airflow.tables import Table


@pytest.fixture(params=["storage", "impl"])
def orders(request: pytest.FixtureRequest, table: Table) -> Table:
    """A table of three versions, each with more rows than the one before."""
    table.declare(managed_by=request.param)
    for _ in range(3):
        table.advance()
    return table


def test_the_newest_and_a_found_version_are_checked(
    lake: str, orders: Table, run: Callable[..., Any]
) -> None:
    found = run(LanceFindVersionOperator, table=str(orders), version=2)
    sql = f'SELECT (SELECT count(*) FROM older) < count(*) FROM "{orders}"'

    SQLCheckOperator(
        task_id="check", conn_id=lake, sql=sql, hook_params={"tables": {"older": found}}
    ).execute({})

    checks = {"grown": {"check_statement": "count(*) > 1000"}}
    for name in (str(orders).replace("$", "."), "older"):
        version = 2 if name == "older" else 3
        operator = SQLTableCheckOperator(
            task_id="check",
            conn_id=lake,
            table=name,
            checks={key: dict(check) for key, check in checks.items()},
            hook_params={"tables": {"older": found}},
        )
        with pytest.raises(AirflowException, match=rf"\(of {orders.database}\$orders at version {version}\)"):
            operator.execute({})


def test_a_database_that_does_not_exist_is_named(lake: str, orders: Table) -> None:
    with pytest.raises(AirflowFailException, match=r"table 'nowhere\.orders' of the query"):
        SQLCheckOperator(task_id="check", conn_id=lake, sql="SELECT 1 FROM nowhere.orders").execute({})
    with pytest.raises(AirflowFailException, match=r"table 'orders' of the query.*written database\.table"):
        SQLCheckOperator(task_id="check", conn_id=lake, sql="SELECT 1 FROM orders").execute({})
