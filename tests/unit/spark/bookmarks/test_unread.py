"""What a consumer has not read, by its bookmark."""

from functools import partial

import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError, TableNotFoundError

from airflow_provider_lancens import LanceCatalog, Table
from airflow_provider_lancens.namespace.storage.object_store import manifest_names
from airflow_provider_lancens.spark import UnreadVersions
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.support.bookmarked_orders import NAME, Orders


def table(orders: Orders, name: str = "orders") -> Table:
    return LanceCatalog(lambda: orders.namespace).table(name)


def test_it_is_what_follows_the_bookmark_up_to_the_newest_version(orders: Orders) -> None:
    orders.move(2)

    unread = table(orders).find_changes(NAME)

    assert (unread.previous_version, unread.version, unread.is_empty) == (2, 4, False)
    assert unread.bookmark == orders.bookmark
    orders.move(4)
    assert table(orders).find_changes(NAME).is_empty


def test_without_a_bookmark_it_is_everything(orders: Orders) -> None:
    assert table(orders).find_changes("another") == UnreadVersions(None, 4, table(orders).location)
    assert table(orders).find_changes("another").previous_version is None


def test_of_a_table_opened_at_a_version_it_ends_there(orders: Orders) -> None:
    orders.move(2)

    pinned = table(orders).at(3)

    assert (pinned.find_changes(NAME).previous_version, pinned.find_changes(NAME).version) == (2, 3)


@pytest.mark.parametrize(
    "name", ["my consumer", "", ".a", "a..b", "a.", "a.lock", "../../data/a", "a\n", "a\u0301"]
)
def test_a_name_that_no_tag_may_have_is_refused_before_anything_is_read(orders: Orders, name: str) -> None:
    opened = table(orders)
    for find in (opened.find_changes, lambda bookmark: opened.changes(bookmark=bookmark)):
        with pytest.raises(InvalidInputError, match="is not a valid tag name"):
            find(name)
    for create in (opened.tag, partial(opened.move_bookmark, version=1)):
        with pytest.raises(InvalidInputError, match="is not a valid tag name"):
            create(name)
    for delete in (opened.delete_tag, opened.delete_bookmark):
        with pytest.raises(InvalidInputError, match="Ref is invalid"):
            delete(name)


def test_a_tag_of_another_client_with_a_longer_name_is_a_bookmark(orders: Orders) -> None:
    opened, name = table(orders), "x" * 210
    opened.dataset().tags.create(name, 2)

    assert opened.find_changes(name).previous_version == 2
    assert opened.move_bookmark(name, 3).version == 3


def test_a_table_without_data_has_nothing_to_read(orders: Orders) -> None:
    orders.namespace.declare_table(DeclareTableRequest(id=["empty"]))

    unread = table(orders, "empty").find_changes(NAME)

    assert (unread.previous_version, unread.version, unread.is_empty) == (None, None, True)
    with pytest.raises(TableNotFoundError):
        table(orders, "missing").find_changes(NAME)


def test_a_bookmark_beyond_the_newest_version_of_a_copied_table_is_refused_until_it_is_set_back(
    orders: Orders,
) -> None:
    orders.move(4)
    for name in manifest_names(4):
        (orders.folder / "_versions" / name).unlink(missing_ok=True)  # as if it was copied before the tag

    with pytest.raises(
        InvalidTableStateError, match=r"is at version 4, and the newest version is 3: .*move_bookmark\("
    ):
        table(orders).find_changes(NAME)
    assert table(orders).move_bookmark(NAME, 3, allow_older=True).version == 3
    orders.commit()
    assert table(orders).find_changes(NAME).version == 4


def test_after_an_expiry_it_is_refused_or_everything(overdue: Orders) -> None:
    overdue.clean_up()

    with pytest.raises(InvalidInputError, match=r"has expired: it was at version 2.*if_unavailable"):
        table(overdue).find_changes(NAME)
    unread = table(overdue).find_changes(NAME, if_unavailable="read_all")

    assert (unread.previous_version, unread.version, unread.is_empty) == (None, 4, False)
    assert unread.bookmark is not None
    assert unread.bookmark.version == 2
    with pytest.raises(InvalidInputError, match="if_unavailable: expected one of fail, read_all"):
        table(overdue).find_changes(NAME, if_unavailable="skip")  # type: ignore[arg-type]


def test_a_bookmark_that_was_moved_past_the_version_that_was_read_leaves_nothing(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.move(4)
    opens, open_latest = iter([3]), ResolvedTable.open_latest
    monkeypatch.setattr(
        ResolvedTable,
        "open_latest",
        lambda resolved: open_latest(resolved) if (old := next(opens, None)) is None else resolved.open(old),
    )

    unread = table(orders).find_changes(NAME)

    assert (unread.is_empty, unread.version) == (True, 4)
