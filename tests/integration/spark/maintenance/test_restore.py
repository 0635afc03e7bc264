"""Restoring a version by its number, a time or a tag, once under a key, and reading by time and tag."""

import os
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from pyspark.sql import SparkSession

from airflow_provider_lancens.namespace.storage.object_store import manifest_names
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.restore import Restoration, restore_version
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from airflow_provider_lancens.spark.table.version_lookup import find_version
from tests.integration.spark.faults.orders_table import Orders
from tests.integration.spark.faults.table_kinds import DIR, HIVE_MANAGED, HIVE_STORAGE, declare, spec_of
from tests.support.reads import read_table

pytestmark = pytest.mark.thorough


@pytest.fixture(params=[DIR, HIVE_STORAGE, HIVE_MANAGED])
def orders(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> Orders:
    """A table of three versions, each with one more order."""
    spec = spec_of(request.param, request, tmp_path)
    orders = Orders(spec, declare(spec, database, request.param), "append")
    for number in range(3):
        orders.write(f"order {number}", range(number, number + 1))
    return orders


PRECISION = timedelta(milliseconds=10)


def committed_at(orders: Orders, version: int) -> datetime:
    """A time right after a version's commit, by the storage's clock."""
    with resolved_table(orders.spec, orders.table) as target:
        manifest = target.dataset.manifests.find(version)
    assert manifest is not None
    assert manifest.modified is not None
    return manifest.modified + PRECISION


def tag(orders: Orders, name: str, version: int) -> None:
    with resolved_table(orders.spec, orders.table) as target:
        target.open(version).tags.create(name, version)


def test_a_version_is_restored_once_under_a_key(orders: Orders) -> None:
    def restore(**how: Any) -> Any:
        return restore_version(orders.spec, orders.table, 1, key="undo", **how)

    first = restore(execution_id="1")
    orders.write("later", range(7, 8))
    again = restore(execution_id="1")

    assert (first.version, first.restored_version, first.is_done) == (4, 1, True)
    assert [one.key for one in first.undone] == ["order 1", "order 2"]
    assert (again.version, again.restored_version, again.is_done, again.undone) == (4, 1, False, ())
    assert orders.ids == [0, 7]
    assert restore(on_existing_key="write_again").version == 6
    assert orders.ids == [0]


def test_undone_writes_are_made_again_and_others_are_not(orders: Orders) -> None:
    restore_version(orders.spec, orders.table, 2, key="undo")

    assert orders.write("order 2", range(2, 3)).is_done
    assert not orders.write("order 1", range(1, 2)).is_done
    assert orders.ids == [0, 1, 2]


def test_restoring_the_newest_version_under_a_key_does_not_undo_later_commits(orders: Orders) -> None:
    restored = restore_version(orders.spec, orders.table, 3, key="undo")
    orders.write("later", range(7, 8))

    skipped = restore_version(orders.spec, orders.table, 3, key="undo", on_existing_key="skip")
    with pytest.raises(InvalidInputError, match="others have changed rows since, which another one would"):
        restore_version(orders.spec, orders.table, 3, key="undo")
    assert not skipped.is_done
    assert (restored.version, restored.undone) == (4, ())
    assert orders.ids == [0, 1, 2, 7]


def test_a_key_that_restored_another_version_restores_again_unless_it_skips(orders: Orders) -> None:
    restore_version(orders.spec, orders.table, 2, key="undo")

    with pytest.raises(InvalidInputError, match="with different data"):
        restore_version(orders.spec, orders.table, 1, key="undo", on_existing_key="skip")
    assert restore_version(orders.spec, orders.table, 1, key="undo").version == 5
    assert orders.ids == [0]


def test_a_restore_does_not_undo_what_others_commit_meanwhile(orders: Orders) -> None:
    with resolved_table(orders.spec, orders.table) as target:
        base = target.open(3)
        orders.write("meanwhile", range(7, 8))
        restoration = Restoration(orders.table, 3, base.schema, [], 1)

        with pytest.raises(ConcurrentModificationError, match="other writers committed up to version 4"):
            restoration.apply_to(target.open_latest())


def test_a_version_is_restored_by_time_and_by_tag(orders: Orders) -> None:
    tag(orders, "first", 1)

    by_time = restore_version(orders.spec, orders.table, committed_at(orders, 2))
    by_tag = restore_version(orders.spec, orders.table, "first")

    assert (by_time.restored_version, by_tag.restored_version) == (2, 1)
    assert orders.ids == [0]


def test_the_version_at_a_time_is_the_newest_committed_by_then(orders: Orders) -> None:
    times = {version: committed_at(orders, version) for version in (1, 2, 3)}

    def at(time: datetime) -> int:
        return find_version(orders.spec, orders.table, time)

    assert [at(times[version]) for version in (1, 2, 3)] == [1, 2, 3]
    assert at(times[3] - PRECISION) == 2
    assert at(times[2].astimezone(timezone(timedelta(hours=9)))) == 2
    time.sleep(PRECISION.total_seconds())
    assert at(datetime.now(UTC)) == 3


@pytest.mark.parametrize("orders", [DIR], indirect=True)
def test_a_version_at_a_time_stays_that_version(orders: Orders) -> None:
    """Also if the next commit is at once, which the storage may give the same time."""
    with resolved_table(orders.spec, orders.table) as target:
        location = target.dataset.location
    for _ in range(20):
        now = datetime.now(UTC)
        before = find_version(orders.spec, orders.table, now)
        lance.dataset(location).update_config({"step": str(before)})
        assert find_version(orders.spec, orders.table, now) == before


@pytest.mark.parametrize("orders", [DIR], indirect=True)
@pytest.mark.parametrize(
    ("stored", "asked", "found"),
    [
        pytest.param((0, 60, 120), (15, 75, 135), [1, 2, 3], id="in order"),
        pytest.param((0, 60, 30), (15, 45, 75), [1, 1, 3], id="a copy, whose version 3 was stored before 2"),
    ],
)
def test_the_clock_of_the_storage_decides_not_that_of_a_writer(
    orders: Orders, stored: tuple[int, ...], asked: tuple[int, ...], found: list[int]
) -> None:
    noon = datetime(2026, 11, 1, 12, tzinfo=UTC)
    with resolved_table(orders.spec, orders.table) as target:
        folder = Path(target.dataset.location, "_versions")
    for version, minutes in enumerate(stored, start=1):
        time_of_file = (noon + timedelta(minutes=minutes)).timestamp()
        os.utime(folder / manifest_names(version)[0], (time_of_file, time_of_file))

    times = [noon + timedelta(minutes=minutes) for minutes in asked]
    assert [find_version(orders.spec, orders.table, one) for one in times] == found


def test_a_table_is_read_as_of_a_time_and_by_tag(spark: SparkSession, orders: Orders) -> None:
    tag(orders, "second", 2)

    at_time = read_table(spark, orders.spec, orders.table, version=committed_at(orders, 1))
    tagged = read_table(spark, orders.spec, orders.table, version="second")

    assert [sorted(row["id"] for row in frame.collect()) for frame in (at_time, tagged)] == [[0], [0, 1]]


@pytest.mark.parametrize("orders", [DIR], indirect=True)
def test_what_cannot_be_found_is_refused_with_what_there_is(orders: Orders) -> None:
    tag(orders, "kept", 3)
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)

    with pytest.raises(TableTagNotFoundError, match="no tag 'other'; tags: kept"):
        find_version(orders.spec, orders.table, "other")
    with pytest.raises(TableVersionNotFoundError, match="its oldest version, 1, was committed at 20"):
        find_version(orders.spec, orders.table, long_ago)
    with pytest.raises(TableVersionNotFoundError, match="has no version 9"):
        restore_version(orders.spec, orders.table, 9)


@pytest.mark.parametrize("orders", [DIR], indirect=True)
@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (None, "version: expected a number"),
        (datetime(2026, 1, 1), "expected a time with a time zone"),  # noqa: DTZ001 the case
        (datetime.now(UTC) + timedelta(days=1), "expected a time in the past"),
    ],
)
def test_an_ambiguous_version_is_refused(orders: Orders, wanted: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        find_version(orders.spec, orders.table, wanted)


@pytest.mark.parametrize("orders", [DIR], indirect=True)
def test_versions_that_were_cleaned_up_are_not_guessed(orders: Orders) -> None:
    before = committed_at(orders, 1)
    time.sleep(0.01)  # the clean-up compares ages
    clean_up_versions(orders.spec, orders.table, older_than=timedelta(0))

    with pytest.raises(TableVersionNotFoundError, match="its oldest version, 3, was committed at"):
        find_version(orders.spec, orders.table, before)
