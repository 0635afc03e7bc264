"""What a bookmark is, and its moves."""

from datetime import timedelta

import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from airflow_provider_lancens.spark.publish import tag_of
from airflow_provider_lancens.spark.release_sets import Member, ReleaseTags
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.support.bookmarked_orders import DAY, NAME, Orders
from tests.support.bookmarks import (
    delete_bookmark,
    find_bookmark,
    list_bookmarks,
    move_bookmark,
)


def test_bookmarks_are_listed_with_how_far_they_are_behind(orders: Orders) -> None:
    orders.move(3, name="late", expires_after=DAY)
    orders.move(4, name="current", expires_after=DAY)
    orders.move(1, name="forever")

    current, forever, late = list_bookmarks(orders.namespace, "orders")

    assert [(one.name, one.version, one.behind) for one in (current, forever, late)] == [
        ("current", 4, 0),
        ("forever", 1, 3),
        ("late", 3, 1),
    ]
    assert late.moved_at is not None
    assert (current.expires_at, forever.expires_at, late.expires_at) == (None, None, late.moved_at + DAY)
    assert late.moved_at.utcoffset() == timedelta(0)


def test_tags_of_others_are_not_listed_but_found_by_their_names(orders: Orders) -> None:
    orders.dataset.tags.create("a-pin", 1)
    orders.dataset.tags.create(tag_of("5f0c0a5e"), 2)
    with resolved_table(orders.namespace, "orders") as release_set:
        ReleaseTags(orders.namespace, release_set).tag_members(1, {"orders": Member(3)})

    assert orders.listed == []
    found = find_bookmark(orders.namespace, "orders", "a-pin")
    assert found is not None
    assert (found.version, found.expires_at, found.is_expired) == (1, None, False)


def test_a_move_sets_the_expiry_anew_and_keeps_what_others_wrote_into_the_tag(orders: Orders) -> None:
    orders.move(1, expires_after=DAY)
    metadata = orders.dataset.tags.list()[NAME]["metadata"]
    orders.dataset.tags.replace_metadata(NAME, {**metadata, "owner": "finance"})

    orders.move(2)

    tag = orders.dataset.tags.list()[NAME]
    assert (tag["version"], tag["metadata"]) == (2, {"lancens.kind": "bookmark", "owner": "finance"})


def test_a_move_by_another_client_keeps_the_expiry(orders: Orders) -> None:
    orders.move(1, expires_after=DAY)

    orders.dataset.tags.update(NAME, 2)

    found = orders.bookmark
    assert found is not None
    assert found.moved_at is not None
    assert (found.version, found.expires_at) == (2, found.moved_at + DAY)


@pytest.mark.parametrize("text", ["", "soon", "-1", "9" * 30, "²"])
def test_an_expiry_that_cannot_be_read_keeps_the_version(orders: Orders, text: str) -> None:
    orders.move(1, expires_after=DAY)
    metadata = orders.dataset.tags.list()[NAME]["metadata"]
    orders.dataset.tags.replace_metadata(NAME, {**metadata, "lancens.expires_after_millis": text})

    assert orders.bookmark is not None
    assert orders.bookmark.expires_at is None


@pytest.mark.parametrize("value", [timedelta(0), timedelta(-1), timedelta(days=99_999), 30, "30"])
def test_an_invalid_expiry_is_refused(orders: Orders, value: object) -> None:
    with pytest.raises(InvalidInputError, match="expires_after: expected a timedelta of at least"):
        orders.move(1, expires_after=value)  # type: ignore[arg-type]


def test_a_bookmark_cannot_be_moved_to_a_version_that_is_not_there(orders: Orders) -> None:
    with pytest.raises(TableVersionNotFoundError, match="has no version 9"):
        orders.move(9)


def test_a_tag_of_a_branch_is_no_bookmark(orders: Orders) -> None:
    orders.dataset.create_branch("audit", 2)
    orders.dataset.tags.create("audited", ("audit", 2))

    with pytest.raises(InvalidInputError, match="tag 'audited' names a version of branch 'audit'"):
        find_bookmark(orders.namespace, "orders", "audited")


def test_a_table_without_data_has_no_bookmarks(orders: Orders) -> None:
    orders.namespace.declare_table(DeclareTableRequest(id=["empty"]))

    assert list_bookmarks(orders.namespace, "empty") == []
    assert find_bookmark(orders.namespace, "empty", NAME) is None
    assert not delete_bookmark(orders.namespace, "empty", NAME)
    with pytest.raises(TableVersionNotFoundError):
        move_bookmark(orders.namespace, "empty", NAME, 1)
