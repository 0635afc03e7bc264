"""A consumer that moves its bookmark while a clean-up finds it expired: no change is passed over."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_lancens.spark import bookmarks
from airflow_provider_lancens.spark import bookmarks as expire_bookmarks
from tests.support.bookmarked_orders import DAY, NAME, Orders

Around = Callable[..., None]


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Around:
    """Call a function once, right before or right after another one of a module."""

    def arrange(
        module: Any,
        name: str,
        *,
        before: Callable[[], object] = bool,
        after: Callable[[], object] = bool,
    ) -> None:
        genuine = getattr(module, name)

        def call(*arguments: Any) -> Any:
            monkeypatch.setattr(module, name, genuine)
            before()
            answer = genuine(*arguments)
            after()
            return answer

        monkeypatch.setattr(module, name, call)

    return arrange


def test_a_move_before_the_tag_is_deleted_wins(overdue: Orders, around: Around) -> None:
    around(expire_bookmarks, "write_expiry", after=lambda: overdue.move(3, expires_after=DAY))

    result = overdue.clean_up()

    assert (result.expired_bookmarks, result.kept_by_tag, overdue.versions) == ((), 1, [3, 4])
    assert overdue.bookmark is not None
    assert (overdue.bookmark.version, overdue.bookmark.is_expired) == (3, False)
    assert overdue.listed == [NAME]


def test_a_move_to_the_same_version_wins_too(overdue: Orders, around: Around) -> None:
    around(expire_bookmarks, "write_expiry", after=lambda: overdue.move(2, expires_after=DAY))

    assert (overdue.clean_up().expired_bookmarks, overdue.versions) == ((), [2, 4])


def test_a_consumer_that_finds_its_moved_tag_deleted_sets_it_again(overdue: Orders, around: Around) -> None:
    around(bookmarks, "set_tag", after=lambda: overdue.dataset.tags.delete(NAME))

    overdue.move(4, expires_after=DAY)

    tag = overdue.dataset.tags.list()[NAME]
    assert tag["version"] == 4
    assert tag["metadata"]["lancens.expires_after_millis"] == "86400000"


def test_a_tag_that_is_deleted_before_its_metadata_are_set_is_set_again(
    overdue: Orders, around: Around
) -> None:
    around(bookmarks, "replace_metadata", before=lambda: overdue.dataset.tags.delete(NAME))

    overdue.move(4, expires_after=DAY)

    assert overdue.bookmark is not None
    assert overdue.bookmark.version == 4


def test_a_move_that_the_deletion_loses_is_found_as_an_expiry(overdue: Orders, around: Around) -> None:
    around(expire_bookmarks, "delete_tag", before=lambda: overdue.move(3, expires_after=DAY))

    overdue.clean_up()

    assert overdue.bookmark is not None
    # The consumer has read up to version 3, so only the changes after it are unread.
    assert (overdue.bookmark.version, overdue.bookmark.is_expired) == (3, True)


def test_a_clean_up_that_is_killed_before_the_deletion_leaves_the_bookmark_live(
    overdue: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> bool:
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr(expire_bookmarks, "delete_tag", killed)
        with pytest.raises(SystemExit):
            overdue.clean_up()
    assert overdue.versions == [1, 2, 3, 4]
    assert overdue.bookmark is not None
    assert (overdue.bookmark.version, overdue.bookmark.is_expired) == (2, False)

    assert overdue.clean_up().expired_bookmarks == (NAME,)


def test_a_bookmark_that_is_always_late_is_never_ahead_of_what_its_consumer_has_read(orders: Orders) -> None:
    """Clean-ups expire the bookmark as often as they can, while its consumer moves it and others commit."""
    ended, expiries, read = threading.Event(), [], 0

    def clean_up() -> None:
        while not ended.is_set():
            expiries.extend(orders.clean_up().expired_bookmarks)

    thread = threading.Thread(target=clean_up)
    thread.start()
    try:
        started = time.monotonic()
        # On a busy machine, few of the clean-ups fall between two moves.
        while (seconds := time.monotonic() - started) < 2 or (not expiries and seconds < 60):
            orders.commit()
            found = orders.bookmark
            # Never another version than the one that was read, and never as if nothing was read.
            assert found is not None or not read
            assert found is None or found.is_expired or found.version == read
            read = orders.dataset.version
            orders.move(read, expires_after=timedelta(milliseconds=1))
    finally:
        ended.set()
        thread.join()
    assert expiries
