"""A task without Spark opens tables of both version authorities through the hook."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators import LanceTagOperator
from tests.integration.airflow.tables import Table


@pytest.fixture(params=["storage", "impl"])
def orders(request: pytest.FixtureRequest, table: Table) -> Table:
    """A table of three versions."""
    table.declare(managed_by=request.param)
    for _ in range(3):
        table.advance()
    return table


def test_exactly_the_version_of_an_xcom_is_read(lake: str, orders: Table, run: Callable[..., Any]) -> None:
    tagged = run(LanceTagOperator, table=str(orders).replace("$", "."), version=2, tag="train")
    read, newest = LanceHook(lake).table(tagged), LanceHook(lake).table(str(orders))

    assert (tagged["table"], read.version, newest.version) == (str(orders), 2, 3)
    assert read.count_rows() < newest.count_rows() == newest.to_arrow().num_rows
    assert read.dataset().version == 2
    assert newest.at("train").version == 2
    assert [one.version for one in newest.history()] == [3, 2, 1]
    assert newest.history()[1].tags == ("train",)


def test_a_table_is_changed_without_spark(lake: str, orders: Table) -> None:
    table = LanceHook(lake).table(str(orders))
    rows = table.count_rows()
    table.delete("TRUE", key="all")
    assert (table.version, table.count_rows()) == (4, 0)
    assert table.restore(3).version == 5
    assert table.count_rows() == rows
    assert not table.changes(4).is_empty
    with pytest.raises(AirflowFailException, match=r"deleting rows of table .*: where: no column 'nothing'"):
        table.delete("nothing = 1")
    with pytest.raises(AirflowFailException, match="has no version 9"):
        table.at(9)


def test_the_catalog_lists_and_drops_tables(lake: str, orders: Table) -> None:
    catalog = LanceHook(lake).catalog()
    database = str(orders).split("$")[0]

    assert catalog.list_tables(database) == [str(orders)]
    assert database in catalog.list_databases()
    assert catalog.drop_table(str(orders))
    with pytest.raises(AirflowFailException, match=r"dropping table .*\(code 4, TABLE_NOT_FOUND\)"):
        catalog.drop_table(str(orders))
    assert catalog.drop_namespace(database, cascade=True)
