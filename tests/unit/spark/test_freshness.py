"""How old the newest data are: maintenance isn't new data."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens import LanceCatalog, Table, connect
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark import freshness as module
from airflow_provider_lancens.spark.freshness import freshness, newest_data

HOUR = timedelta(hours=1)


@pytest.fixture
def orders(lake: LanceCatalog) -> Table:
    """A table with two small fragments, of versions 1 and 2."""
    table = lake.declare_table("orders")
    for number in (1, 2):
        lance.write_dataset(pa.table({"id": [number]}), table.location, mode="append")
    return table


def compacted(table: Table) -> lance.LanceDataset:
    dataset = lance.dataset(table.location)
    dataset.optimize.compact_files()
    return dataset


def committed(table: Table, version: int) -> datetime:
    found: datetime = lance.dataset(table.location, version=version).get_version()["timestamp"]
    return found.astimezone(UTC)


def test_the_newest_data_are_those_of_the_newest_commit_that_changed_rows(orders: Table) -> None:
    assert newest_data(orders.dataset()) == (2, committed(orders, 2), True)

    assert newest_data(compacted(orders)) == (2, committed(orders, 2), True)


def test_of_data_whose_commit_is_gone_the_least_age_is_known(orders: Table) -> None:
    dataset = compacted(orders)
    newest = dataset.version
    dataset.cleanup_old_versions(timedelta(0))

    assert newest_data(dataset) == (newest, committed(orders, newest), False)


def test_no_more_than_some_commits_of_maintenance_are_read(
    orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST", 1)
    dataset = compacted(orders)
    dataset.create_scalar_index("id", "BTREE")

    newest = dataset.version
    assert newest_data(dataset) == (newest, committed(orders, newest), False)


def test_data_are_late_if_they_are_older_than_expected(orders: Table) -> None:
    dataset, now = orders.dataset(), committed(orders, 2) + 6 * HOUR

    late = freshness(TableId.parse("orders"), dataset, 5 * HOUR, now)
    fresh = freshness(TableId.parse("orders"), dataset, 6 * HOUR, now)
    unknown = freshness(TableId.parse("orders"), dataset, None, now)

    when = f"{committed(orders, 2):%Y-%m-%d %H:%M:%S} UTC"
    assert (late.is_late, fresh.is_late, unknown.is_late) == (True, False, False)
    assert (late.age_seconds, late.max_age_seconds) == (21600, 18000)
    assert late.reason == (
        f"the newest data are 6 hours old (version 2, committed {when}), expected every 5 hours"
    )
    assert unknown.reason == f"the newest data are 6 hours old (version 2, committed {when})"
    assert late.as_dict()["updated_at"] == committed(orders, 2).isoformat(timespec="seconds")


def test_a_clock_that_is_behind_makes_no_negative_age(orders: Table) -> None:
    found = freshness(TableId.parse("orders"), orders.dataset(), HOUR, committed(orders, 2) - HOUR)
    assert (found.age_seconds, found.is_late) == (0, False)


def test_a_table_tells_the_age_of_its_data_without_spark(orders: Table) -> None:
    found = orders.check_freshness(max_age=HOUR)

    assert (found.table, found.operation, found.outcome) == ("orders", "check_freshness", "unchanged")
    assert (found.version, found.is_late) == (2, False)
    assert orders.at(1).check_freshness(max_age="PT1H").version == 1


def test_late_data_are_an_error_or_reported(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    later: Any = type("Later", (datetime,), {"now": staticmethod(lambda zone: datetime.now(zone) + 2 * HOUR)})
    monkeypatch.setattr(module, "datetime", later)

    with pytest.raises(InvalidTableStateError, match="table orders: the newest data are 2 hours old"):
        orders.check_freshness(max_age=HOUR)
    assert orders.check_freshness(max_age=HOUR, if_late="report").is_late


def test_a_table_without_data_is_late(lake: LanceCatalog) -> None:
    found = lake.declare_table("empty").check_freshness(max_age=HOUR, if_late="report")

    assert (found.version, found.age_seconds, found.is_late) == (None, None, True)
    assert found.reason == "no data has been written yet, expected every 1 hour"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "max_age is not given, and the table has no property 'lancens.expected_update_interval'"),
        ({"max_age": "soon"}, "max_age: expected a duration such as PT6H"),
        ({"max_age": timedelta(0)}, "max_age: expected a duration such as PT6H"),
        ({"max_age": HOUR, "if_late": "warn"}, "if_late"),
    ],
)
def test_invalid_arguments_are_refused(arguments: Any, message: str, orders: Table) -> None:
    with pytest.raises(InvalidInputError, match=message):
        orders.check_freshness(**arguments)


def test_a_catalog_that_does_not_keep_the_expectation_is_warned_of(
    lake: LanceCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    lake.declare_table("orders", properties={"lancens.expected_update_interval": "PT6H"})

    assert (
        "table orders: its catalog doesn't keep the property lancens.expected_update_interval" in caplog.text
    )


def test_a_staged_version_is_as_old_as_its_write(tmp_path: Path) -> None:
    table = connect("dir", {"root": str(tmp_path)}).declare_table("t")
    table.append(pa.table({"id": [1]}))
    staged = table.append(pa.table({"id": [2]}), stage=True)

    found = table.at(staged.staged_version).check_freshness(max_age=timedelta(hours=1))

    assert not found.is_late
    assert found.version == table.at(staged.staged_version).version
