"""Waits for all or any of several tables, in every mode."""

from collections.abc import Callable
from typing import Any

import pytest
from lance_namespace import LanceNamespace

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, AirflowSensorTimeout
from airflow_provider_lancens.sensors import LanceTableVersionSensor
from tests.integration.airflow.lifecycle import run_to_its_end
from tests.integration.airflow.tables import Table
from tests.integration.hive.raw import raw_client, raw_table

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
def test_any_table_ends_the_wait_and_all_tables_are_reported(
    wait: Wait, tables: list[Table], meanwhile: Any, advanced: int
) -> None:
    names = [str(table) for table in tables]
    waiting = meanwhile(wait, table=names, after_version=1, wait_for="any")
    tables[advanced].advance()
    found = waiting.result(60)
    assert found[names[advanced]]["version"] == 2
    assert found[names[1 - advanced]]["version"] == 1


def test_the_next_run_starts_from_the_last_version_of_each_table(wait: Wait, tables: list[Table]) -> None:
    names = [str(table) for table in tables]
    earlier = wait(table=names, wait_for="any")
    with pytest.raises(AirflowSensorTimeout):
        wait(earlier, table=names, wait_for="any", timeout=0.5)
    tables[1].advance()
    found = wait(earlier, table=names, wait_for="any")
    assert (found[names[1]]["version"], found[names[1]]["previous_version"]) == (2, 1)
    assert (found[names[0]]["version"], found[names[0]]["previous_version"]) == (1, 1)


def test_a_missing_table_delays_a_wait_for_all_but_not_for_any(wait: Wait, tables: list[Table]) -> None:
    names = [str(tables[0]), f"{tables[0].database}$missing"]
    with pytest.raises(AirflowSensorTimeout):
        wait(table=names, timeout=0.5)
    assert list(wait(table=names, wait_for="any")) == names[:1]


@pytest.fixture
def no_lance_table(metastore: MetastoreServer, tables: list[Table]) -> str:
    """A table of another format in the same database, created by another client."""
    database = tables[0].database
    with raw_client(metastore.uri) as client:
        stored = raw_table(metastore.uri, database, tables[0].name)
        stored.tableName, stored.parameters = "parquet", {"EXTERNAL": "TRUE"}
        client.create_table(stored)
    return f"{database}$parquet"


def test_a_foreign_table_fails_a_wait_for_all(wait: Wait, tables: list[Table], no_lance_table: str) -> None:
    with pytest.raises(AirflowFailException, match=r"polling table '.*parquet'.*is not a Lance table"):
        wait(table=[str(tables[0]), no_lance_table], after_version=1)


def test_a_wait_for_any_continues_without_a_foreign_table(
    wait: Wait, tables: list[Table], no_lance_table: str, meanwhile: Any
) -> None:
    names = [no_lance_table, *map(str, tables)]
    waiting = meanwhile(wait, table=names, after_version=1, wait_for="any")
    tables[1].advance()
    found = waiting.result(60)
    assert {name: result["version"] for name, result in found.items()} == {names[1]: 1, names[2]: 2}


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_wait_for_any_logs_once_which_table_it_skips(
    lake: str, tables: list[Table], no_lance_table: str, capfd: pytest.CaptureFixture[str], deferrable: bool
) -> None:
    names = [no_lance_table, str(tables[0])]
    bounds = {"after_version": 1, "wait_for": "any", "lance_conn_id": lake}
    sensor = LanceTableVersionSensor(
        task_id="wait", table=names, poke_interval=0.05, timeout=1, deferrable=deferrable, **bounds
    )
    with pytest.raises(AirflowSensorTimeout):
        run_to_its_end(sensor)
    assert capfd.readouterr().out.count("still waiting for the other tables") == 1


def test_a_wait_for_any_fails_without_retry_if_no_table_is_left(wait: Wait, no_lance_table: str) -> None:
    with pytest.raises(
        AirflowFailException, match=r"'.*parquet'.*is not a Lance table.*; polling table 'orders'"
    ):
        wait(table=[no_lance_table, "orders"], wait_for="any")
