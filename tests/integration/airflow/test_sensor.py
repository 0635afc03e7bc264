"""The sensor behaves the same in every mode: one suite for poke, reschedule and deferrable."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore
from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
)
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.airflow.tables import Table

Wait = Callable[..., Any]


def test_an_existing_version_ends_the_wait_at_once(wait: Wait, table: Table) -> None:
    location = table.declare()
    table.advance()
    assert wait() == {"table": str(table), "version": 1, "previous_version": None, "location": location}


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_a_version_committed_meanwhile_ends_the_wait(
    wait: Wait, table: Table, meanwhile: Any, managed_by: str
) -> None:
    location = table.declare(managed_by=managed_by)
    table.advance()
    waiting = meanwhile(wait, after_version="1")
    table.advance()
    assert waiting.result(60) == {
        "table": str(table),
        "version": 2,
        "previous_version": 1,
        "location": location,
    }


def test_a_direct_commit_to_a_managed_table_does_not_end_the_wait(
    wait: Wait, table: Table, meanwhile: Any
) -> None:
    location = table.declare(managed_by="impl")
    table.advance()
    lance.write_dataset(pa.table({"n": [2]}), location, mode="append")
    waiting = meanwhile(wait, after_version="1")
    assert not waiting.done()
    table.namespace.adopt_table(table.id)  # type: ignore[attr-defined]
    assert waiting.result(60)["version"] == 2


def test_an_undeclared_table_is_waited_for(wait: Wait, table: Table, meanwhile: Any) -> None:
    waiting = meanwhile(wait)
    table.declare()
    assert not waiting.done()
    table.advance()
    assert waiting.result(60)["version"] == 1


def test_a_minimum_version_is_waited_for(wait: Wait, table: Table, meanwhile: Any) -> None:
    table.declare()
    table.advance()
    waiting = meanwhile(wait, min_version=3)
    table.advance()
    table.advance()
    assert waiting.result(60)["version"] == 3


def test_the_newest_of_several_new_versions_is_returned(wait: Wait, table: Table) -> None:
    table.declare()
    for _ in range(3):
        table.advance()
    assert wait(after_version=1)["version"] == 3


def test_a_timeout_raises_the_sensor_timeout_error(wait: Wait, table: Table) -> None:
    table.declare()
    with pytest.raises(AirflowSensorTimeout):
        wait(timeout=0.5)


def test_a_timeout_skips_with_soft_fail(wait: Wait, table: Table) -> None:
    table.declare()
    with pytest.raises(AirflowSkipException):
        wait(timeout=0.5, soft_fail=True)


def test_an_invalid_table_fails_without_retry(wait: Wait) -> None:
    with pytest.raises(AirflowFailException, match=r"polling table 'orders'.*expected: 2"):
        wait(table="orders")


def test_an_invalid_table_skips_with_soft_fail(wait: Wait) -> None:
    with pytest.raises(AirflowSkipException):
        wait(table="orders", soft_fail=True)


def test_a_wait_survives_a_metastore_that_does_not_reply(
    wait: Wait, connect: Callable[..., str], free_ports: list[int]
) -> None:
    silent = connect("silent", host=f"127.0.0.1:{free_ports[0]}")
    with pytest.raises(AirflowSensorTimeout):
        wait(lance_conn_id=silent, timeout=0.5)


@pytest.mark.slow
# In mode reschedule it polls as in mode poke.
@pytest.mark.parametrize(
    "wait", ["poke", pytest.param("reschedule", marks=pytest.mark.long), "deferrable"], indirect=True
)
def test_a_wait_survives_a_metastore_outage(
    wait: Wait, connect: Callable[..., str], free_ports: list[int], meanwhile: Any, tmp_path: Path
) -> None:
    port = free_ports[0]
    late = connect("late", host=f"127.0.0.1:{port}")
    waiting = meanwhile(wait, lance_conn_id=late, table="sales$orders")
    with EmbeddedMetastore(tmp_path / "metastore", port=port) as metastore:
        with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
            table = Table(namespace, "sales", "orders")
            table.declare()
            table.advance()
        assert waiting.result(60)["version"] == 1
