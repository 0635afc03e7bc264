"""How often a table is to get new data is in its properties: the doctor, the page and a task compare it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens import Table
from airflow_provider_lancens.doctor import Finding, diagnose
from airflow_provider_lancens.hooks import LanceHook
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.spark import freshness
from airflow_provider_lancens.ui import table_details

Declare = Callable[..., Table]
HOUR = timedelta(hours=1)
ADVICE = "Look at the runs of the task that writes it, or correct the property."


@pytest.fixture(params=["storage", "catalog"])
def declare(request: pytest.FixtureRequest, lake: str, database: str) -> Declare:
    """Declare a table with properties, and write a version with data and one of maintenance."""

    def declare(**properties: str) -> Table:
        tables = LanceHook(lake).catalog()
        tables.create_namespace(database)
        table = tables.declare_table(
            f"{database}.orders", version_authority=request.param, properties=properties
        )
        for number in (1, 2):
            table.append(pa.table({"id": [number]}))
        namespace = {"namespace_client": tables.namespace, "table_id": list(table.id)}
        lance.dataset(**namespace).optimize.compact_files()
        assert (table.version or 0) > 2
        return table

    return declare


@pytest.fixture
def seven_hours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    later: Any = type("Later", (datetime,), {"now": staticmethod(lambda zone: datetime.now(zone) + 7 * HOUR)})
    monkeypatch.setattr(freshness, "datetime", later)


def findings(lake: str, table: Table) -> list[Finding]:
    found = diagnose(lake, [table.name], read_only=True)
    return [one for one in found if one.subject == f"table {table.name}" and "data" in one.text]


def test_new_data_in_time_are_told(lake: str, declare: Declare) -> None:
    table = declare(**{"lancens.expected_update_interval": "PT6H"})

    [found] = findings(lake, table)
    shown = table_details.describe(LanceHook(lake), table.name)["freshness"]
    assert (found.level, found.advice) == ("ok", "")
    assert "old (version 2, committed " in found.text
    assert found.text.endswith("expected every 6 hours")
    assert shown["late"] is False
    assert LanceHook(lake).table(table.name).check_freshness().version == 2


@pytest.mark.usefixtures("seven_hours_later")
def test_late_data_are_a_warning_and_fail_a_task_without_retries(lake: str, declare: Declare) -> None:
    table = declare(**{"lancens.expected_update_interval": "PT6H"})

    [found] = findings(lake, table)
    shown = table_details.describe(LanceHook(lake), table.name)["freshness"]
    assert (found.level, found.advice) == ("warning", ADVICE)
    assert found.text.startswith("the newest data are 7 hours old (version 2, committed ")
    assert (shown["late"], shown["text"]) == (True, found.text)
    with pytest.raises(AirflowFailException, match="the newest data are 7 hours old"):
        LanceHook(lake).table(table.name).check_freshness()


@pytest.mark.usefixtures("seven_hours_later")
def test_of_a_table_without_the_property_nothing_is_told(lake: str, declare: Declare) -> None:
    table = declare()

    assert findings(lake, table) == []
    assert table_details.describe(LanceHook(lake), table.name)["freshness"] is None


def test_what_another_client_wrote_in_the_property_is_named(
    lake: str, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "airflow_provider_lancens.namespace.table_properties.check_expected_update", lambda properties: None
    )
    table = declare(**{"lancens.expected_update_interval": "daily"})

    [found] = [
        one
        for one in diagnose(lake, [table.name], read_only=True)
        if "lancens.expected_update_interval" in one.text
    ]
    assert (found.level, found.advice) == ("warning", "Correct the property, or remove it.")
    assert table_details.describe(LanceHook(lake), table.name)["freshness"] is None
