"""One wait for several tables: for all of them, or for any, in every mode."""

from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSensorTimeout
from lance_namespace import LanceNamespace

from tests.integration.airflow.tables import Table

Wait = Callable[..., Any]


@pytest.fixture
def tables(namespace: LanceNamespace, database: str) -> list[Table]:
    """Two tables at version 1."""
    made = [Table(namespace, database, name) for name in ("orders", "items")]
    for table in made:
        table.declare()
        table.advance()
    return made


def test_all_tables_are_waited_for(wait: Wait, tables: list[Table], meanwhile: Any) -> None:
    names = [str(table) for table in tables]
    waiting = meanwhile(wait, table=names, after_version=1)
    tables[1].advance()
    assert not waiting.done()
    tables[0].advance()
    found = waiting.result(60)
    assert {
        name: (found[name]["version"], found[name]["previous_version"]) for name in names
    } == dict.fromkeys(names, (2, 1))


@pytest.mark.parametrize("advanced", [0, 1])
def test_any_table_ends_the_wait_and_the_others_are_told_as_they_are(
    wait: Wait, tables: list[Table], meanwhile: Any, advanced: int
) -> None:
    names = [str(table) for table in tables]
    waiting = meanwhile(wait, table=names, after_version=1, wait_for="any")
    tables[advanced].advance()
    found = waiting.result(60)
    assert found[names[advanced]]["version"] == 2
    assert found[names[1 - advanced]]["version"] == 1


def test_the_next_run_starts_from_where_each_table_was(wait: Wait, tables: list[Table]) -> None:
    names = [str(table) for table in tables]
    earlier = wait(table=names, wait_for="any")
    with pytest.raises(AirflowSensorTimeout):
        wait(earlier, table=names, wait_for="any", timeout=0.5)
    tables[1].advance()
    found = wait(earlier, table=names, wait_for="any")
    assert (found[names[1]]["version"], found[names[1]]["previous_version"]) == (2, 1)
    assert (found[names[0]]["version"], found[names[0]]["previous_version"]) == (1, 1)


def test_a_table_that_is_missing_holds_up_all_but_not_any(wait: Wait, tables: list[Table]) -> None:
    names = [str(tables[0]), f"{tables[0].database}$missing"]
    with pytest.raises(AirflowSensorTimeout):
        wait(table=names, timeout=0.5)
    assert list(wait(table=names, wait_for="any")) == names[:1]


def test_a_table_that_can_never_come_fails_for_good_in_a_list_too(wait: Wait, tables: list[Table]) -> None:
    with pytest.raises(AirflowFailException, match="looking at table 'orders'"):
        wait(table=[str(tables[0]), "orders"], after_version=1, wait_for="any")
