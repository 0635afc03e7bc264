"""Bookmarks expire at a clean-up, and their consumers learn of it."""

import logging
import time
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_lancens.spark.bookmarks import EXPIRED_BOOKMARKS
from airflow_provider_lancens.spark.maintenance import Thresholds
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.maintenance.table_state import table_state
from tests.support.bookmarked_orders import DAY, NAME, Orders
from tests.support.bookmarks import delete_bookmark
from tests.unit.spark.maintenance.ages import age_all


def test_a_bookmark_that_is_not_moved_in_time_expires(orders: Orders) -> None:
    orders.move(2, expires_after=timedelta(milliseconds=1))
    time.sleep(0.05)  # the file system's clock, which decides, ticks in steps of some milliseconds

    result = orders.clean_up()

    assert (result.versions, result.kept_by_tag, result.expired_bookmarks) == (3, 0, (NAME,))
    assert orders.versions == [4]
    assert orders.dataset.tags.list() == {}
    found = orders.bookmark
    assert found is not None
    assert found.is_expired
    assert (found.name, found.version, found.behind) == (NAME, 2, 2)


def test_a_bookmark_without_expiry_or_before_it_keeps_its_version(orders: Orders) -> None:
    orders.move(1)
    orders.move(2, expires_after=4 * DAY, name="other")
    orders.set_back(3 * DAY)
    orders.set_back(3 * DAY, name="other")

    result = orders.clean_up()

    assert (result.versions, result.kept_by_tag, result.expired_bookmarks) == (1, 2, ())
    assert orders.versions == [1, 2, 4]


def test_an_expiry_is_logged_and_says_when_and_from_which_version(
    overdue: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    live, before = overdue.bookmark, datetime.now(UTC)

    with caplog.at_level(logging.WARNING):
        overdue.clean_up()

    assert live is not None
    assert live.moved_at is not None
    assert live.expires_at == live.moved_at + 2 * DAY
    found = overdue.bookmark
    assert found is not None
    assert found.expired_at is not None
    assert abs(found.expired_at - before) < timedelta(minutes=1)
    assert (found.moved_at, found.expires_at) == (live.moved_at, live.expires_at)
    [warning] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "table orders: bookmark 'revenue' expired: it was last moved at" in warning
    assert "to version 2, which is 2 behind" in warning


def test_a_bookmark_at_the_newest_version_never_expires(orders: Orders) -> None:
    orders.move(4, expires_after=DAY)
    orders.set_back(30 * DAY)

    assert orders.clean_up().expired_bookmarks == ()
    assert (orders.bookmark is not None, orders.bookmark and orders.bookmark.expires_at) == (True, None)


def test_a_consumer_that_had_nothing_to_read_is_late_only_from_the_next_version_on(orders: Orders) -> None:
    orders.move(4, expires_after=10 * DAY)
    orders.set_back(30 * DAY)
    orders.commit()
    assert orders.clean_up().expired_bookmarks == ()

    orders.set_back_commit(5, 11 * DAY)

    assert orders.clean_up().expired_bookmarks == (NAME,)


def test_moving_a_bookmark_to_the_same_version_renews_it(overdue: Orders) -> None:
    overdue.move(2, expires_after=2 * DAY)

    assert overdue.clean_up().expired_bookmarks == ()
    assert overdue.versions == [2, 4]


def test_moving_an_expired_bookmark_makes_it_live_again(overdue: Orders) -> None:
    overdue.clean_up()

    overdue.move(4, expires_after=2 * DAY)

    found = overdue.bookmark
    assert found is not None
    assert (found.version, found.is_expired) == (4, False)
    assert overdue.listed == [NAME]
    overdue.commit()
    overdue.set_back(3 * DAY)
    assert overdue.clean_up().expired_bookmarks == (NAME,)
    found = overdue.bookmark
    assert found is not None
    assert (found.version, found.is_expired) == (4, True)


def test_deleting_an_expired_bookmark_forgets_it(overdue: Orders) -> None:
    overdue.clean_up()

    assert delete_bookmark(overdue.namespace, "orders", NAME)
    assert not delete_bookmark(overdue.namespace, "orders", NAME)
    assert (overdue.bookmark, overdue.listed) == (None, [])


def test_a_dry_run_counts_what_the_tag_keeps_and_changes_nothing(overdue: Orders) -> None:
    overdue.move(1, name="kept")
    said = overdue.clean_up(dry_run=True)
    assert overdue.versions == [1, 2, 3, 4]
    assert overdue.bookmark is not None
    assert not overdue.bookmark.is_expired

    done = overdue.clean_up()

    assert (said.versions, said.files, said.kept_by_tag, said.expired_bookmarks) == (2, 2, 1, (NAME,))
    assert (said.versions, said.files, said.bytes, said.kept_by_tag, said.expired_bookmarks) == (
        done.versions,
        done.files,
        done.bytes,
        done.kept_by_tag,
        done.expired_bookmarks,
    )


def test_a_dry_run_counts_no_file_that_another_version_needs(orders: Orders) -> None:
    orders.dataset.create_scalar_index("n", "BTREE")
    orders.dataset.delete("n = 5")
    orders.move(5, expires_after=2 * DAY)
    orders.commit()
    orders.dataset.tags.create("deleted", 6)
    orders.set_back(3 * DAY)

    said, done = orders.clean_up(dry_run=True), orders.clean_up()

    assert (said.versions, said.files, said.bytes) == (done.versions, done.files, done.bytes)
    assert (said.versions, orders.versions) == (5, [6, 7])


def test_a_version_that_only_an_overdue_bookmark_keeps_makes_a_clean_up_due(overdue: Orders) -> None:
    overdue.clean_up(older_than=4 * DAY, thresholds=Thresholds(max_removal_delay=timedelta(0)))
    assert overdue.versions == [1, 2, 3, 4]
    overdue.move(1, name="other")
    overdue.move(3, name="another")

    with table_state(overdue.namespace, "orders") as state:
        assert state.old_versions(3 * DAY, 1).removable == 1
    result = overdue.clean_up(thresholds=Thresholds(min_removable_versions=1))

    assert (result.versions, result.expired_bookmarks, overdue.versions) == (1, (NAME,), [1, 3, 4])


def test_a_record_whose_content_was_lost_still_says_that_the_bookmark_expired(overdue: Orders) -> None:
    overdue.clean_up()
    [record] = (overdue.folder / EXPIRED_BOOKMARKS).iterdir()
    record.write_bytes(b"")

    found = overdue.bookmark

    assert found is not None
    assert (found.is_expired, found.version) == (True, 0)


def test_a_clean_up_of_orphans_keeps_the_records(overdue: Orders) -> None:
    overdue.clean_up()
    age_all(overdue.folder / "_lancens")

    remove_orphans(overdue.namespace, "orders")

    assert overdue.bookmark is not None
    assert overdue.bookmark.is_expired
