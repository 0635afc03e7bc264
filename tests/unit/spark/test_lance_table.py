"""A table is read, maintained and described by its methods, at its newest version or exactly at one."""

from __future__ import annotations

import inspect
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    TableColumnNotFoundError,
    TableIndexNotFoundError,
    TableNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens import LanceCatalog, Table, WriteIdentity
from airflow_provider_lancens.namespace.storage.object_store import manifest_names


@pytest.fixture
def orders(lake: LanceCatalog) -> Table:
    """A table with the rows 1 and 2 in version 1, and 3 in version 2."""
    table = lake.declare_table("orders")
    for ids in ([1, 2], [3]):
        rows = pa.table({"id": ids, "day": [f"2026-11-0{one}" for one in ids]})
        lance.write_dataset(rows, table.location, mode="append")
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow(columns=["id"])["id"].to_pylist())


def test_a_table_reads_its_newest_version_and_one_that_is_opened_at_a_version_reads_that(
    orders: Table,
) -> None:
    first = orders.at(1)

    assert (orders.version, orders.is_pinned, ids(orders)) == (2, False, [1, 2, 3])
    assert (first.version, first.is_pinned, ids(first)) == (1, True, [1, 2])
    assert repr(first) == "Table('orders', version 1)"
    assert first.at() is first
    assert first.at(2).version == 2
    assert first.dataset().version == 1
    assert orders.dataset().version == 2


FLAGS = [
    (name, argument)
    for name, method in vars(Table).items()
    if not name.startswith("_") and callable(method)
    for argument, kind in method.__annotations__.items()
    if kind == "bool" and argument != "return"
]


@pytest.mark.parametrize(("method", "argument"), FLAGS)
def test_a_flag_that_is_neither_true_nor_false_is_refused_before_anything_is_done(
    orders: Table, method: str, argument: str
) -> None:
    verb = getattr(orders, method)
    parameters = inspect.signature(verb).parameters.values()
    required = [
        ["id"] if one.annotation == "Sequence[str]" else "1"
        for one in parameters
        if one.default is one.empty and one.kind is not one.KEYWORD_ONLY
    ]

    with pytest.raises(InvalidInputError, match=f"^{argument}: expected True or False, got 'false'"):
        verb(*required, **{argument: "false"})
    assert orders.version == 2


@pytest.mark.parametrize("version", [1, "1"])
def test_a_result_opens_exactly_its_version(lake: LanceCatalog, orders: Table, version: Any) -> None:
    table = lake.table({"table": "orders", "version": version, "rows": 2})

    assert (table.version, ids(table)) == (1, [1, 2])


def test_rows_are_read_by_columns_condition_and_limit_without_spark(orders: Table) -> None:
    assert orders.count_rows() == 3
    assert orders.count_rows(filter="id > 1 AND day IS NOT NULL") == 2
    assert orders.to_arrow(columns=["day", "id"], filter="id = 2").to_pylist() == [
        {"day": "2026-11-02", "id": 2}
    ]
    assert orders.to_arrow(limit=1).num_rows == 1
    assert orders.to_arrow(limit=0).num_rows == 0
    assert orders.to_pandas(columns=["id"], filter="id = 3")["id"].tolist() == [3]
    assert orders.schema.names == ["id", "day"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"columns": ["ids"]}, TableColumnNotFoundError, "expected names among"),
        ({"columns": "id"}, InvalidInputError, "columns: expected a list of names"),
        ({"filter": "ids > 1"}, InvalidInputError, "ids"),
        ({"filter": "id >"}, InvalidInputError, "filter"),
        ({"limit": -1}, InvalidInputError, "limit: expected a whole number"),
        ({"limit": True}, InvalidInputError, "limit: expected a whole number"),
    ],
)
def test_an_invalid_read_is_refused_with_the_argument(
    orders: Table, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        orders.to_arrow(**arguments)


def test_a_table_without_data_has_no_version_to_read(lake: LanceCatalog) -> None:
    empty = lake.declare_table("empty")

    assert empty.version is None
    assert (empty.history(), empty.tags(), empty.bookmarks()) == ([], [], [])
    reads: list[Any] = [empty.at, empty.dataset, empty.count_rows, empty.to_arrow, lambda: empty.schema]
    for read in reads:
        with pytest.raises(TableVersionNotFoundError, match="nothing has been written to it yet"):
            read()


def test_a_table_that_is_not_declared_is_not_found(lake: LanceCatalog) -> None:
    reads: list[Any] = [lambda: lake.table("nowhere").version, lake.table("nowhere").count_rows]
    for read in reads:
        with pytest.raises(TableNotFoundError):
            read()


def test_a_version_is_chosen_by_number_time_or_tag(orders: Table) -> None:
    orders.tag("first", 1)
    now = datetime.now(UTC)
    manifests = sorted(Path(orders.location, "_versions").glob("*.manifest"), reverse=True)
    for file, hours in zip(manifests, (2, 1), strict=True):
        os.utime(file, times=(committed := (now - timedelta(hours=hours)).timestamp(), committed))
    early, late = now - timedelta(minutes=90), now - timedelta(minutes=30)

    wanted = (1, "2", "first", None, early, late, early.isoformat(), str(late))
    assert [orders.at(one).version for one in wanted] == [1, 2, 1, 2, 1, 2, 1, 2]


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [
        (7, TableVersionNotFoundError, "has no version 7"),
        ("7", TableVersionNotFoundError, "has no version 7"),
        ("nightly", TableTagNotFoundError, "has no tag 'nightly'"),
        ("2026-11-25", TableTagNotFoundError, r"A time is written with hours .*'2026-11-25T00:00:00\+00:00'"),
        ("2026-11-25T00:00", InvalidInputError, "expected a time with a time zone"),
        ("25:00", InvalidInputError, "version: expected a number, a time with a time zone"),
        (datetime(2026, 11, 25), InvalidInputError, "expected a time with a time zone"),  # noqa: DTZ001
        (datetime(2000, 1, 1, tzinfo=UTC), TableVersionNotFoundError, "its oldest version"),
        ("2000-01-01T00:00:00Z", TableVersionNotFoundError, "its oldest version"),
        ("2000-01-01 00:00:00+00:00", TableVersionNotFoundError, "its oldest version"),
        (datetime(3000, 1, 1, tzinfo=UTC), InvalidInputError, "expected a time in the past"),
        (-1, InvalidInputError, "got -1"),
        (True, InvalidInputError, "got True"),
        (1.5, InvalidInputError, "got 1.5"),
        ("", InvalidInputError, "got ''"),
        ({"table": "orders", "version": 1}, InvalidInputError, r"got a dict; .* open lake.table\(...\)"),
    ],
)
def test_what_is_no_version_is_refused_with_what_it_may_be(
    orders: Table, version: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        orders.at(version)


def test_digits_that_are_also_the_name_of_a_tag_are_refused_with_both_readings(orders: Table) -> None:
    orders.tag("2", 1)

    with pytest.raises(InvalidInputError, match=r"'2' has two readings: .*the tag of that name"):
        orders.at("2")
    with pytest.raises(InvalidInputError, match="two readings"):
        orders.restore("2")
    assert orders.at(2).version == 2


WRITES: dict[str, tuple[Any, ...]] = {
    "append": (None,),
    "overwrite": (None,),
    "upsert": (None, ["id"]),
    "delete": ("id = 1",),
    "restore": (1,),
    "publish": (1,),
    "discard": (1,),
    "confirm_write": ("key",),
    "add_columns": (),
    "alter_columns": (),
    "drop_columns": (["id"],),
    "compute_column": ("x", None, ["id"]),
    "maintain": (),
    "compact": (),
    "create_index": ("id", "BTREE"),
    "drop_index": ("id_idx",),
    "expire_versions": (),
    "remove_orphans": (),
}


@pytest.mark.parametrize("verb", WRITES)
def test_a_table_that_is_opened_at_a_version_is_read_only(orders: Table, verb: str) -> None:
    right = re.escape(f"lake.table('orders').{verb}(...)")

    with pytest.raises(InvalidInputError, match=f"is opened at version 1, and read-only.*{right}"):
        getattr(orders.at(1), verb)(*WRITES[verb])


@pytest.mark.parametrize(
    ("read", "arguments"), [("read", {}), ("append", {"rows": {"format": "csv", "paths": "/a"}})]
)
def test_what_needs_spark_says_what_to_do_without_a_session(
    orders: Table, read: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(InvalidInputError, match="this needs Spark, and no session is active: create one"):
        getattr(orders, read)(**arguments)


@pytest.mark.parametrize("rows", [[1, 2], None, "rows", 7])
def test_rows_of_another_kind_are_refused(orders: Table, rows: Any) -> None:
    with pytest.raises(
        InvalidInputError, match="rows: expected a Spark DataFrame, a FileSource, or rows as Arrow"
    ):
        orders.append(rows)


def test_an_unknown_field_of_files_is_refused(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match=r"rows: .*folder"):
        orders.append({"folder": "/a"})


def test_rows_are_deleted_once_under_a_key(orders: Table) -> None:
    first = orders.delete("id = 1", key="cleanup")
    again = orders.delete("id = 1", key=WriteIdentity("cleanup", on_existing_key="skip"))

    assert (first.is_done, first.deleted, first.version) == (True, 1, 3)
    assert (again.is_done, again.version) == (False, 3)
    assert ids(orders) == [2, 3]
    with pytest.raises(InvalidInputError, match="fingerprint: expected None here"):
        orders.delete("id = 2", key=WriteIdentity("other", fingerprint="x"))
    with pytest.raises(InvalidInputError, match="key: expected text"):
        orders.delete("id = 2", key=7)  # type: ignore[arg-type]


def test_a_write_is_found_by_its_key(orders: Table) -> None:
    orders.delete("id = 1", key="cleanup")
    found = orders.find_write("cleanup")

    assert found is not None
    assert found.version == 3
    assert orders.find_write("other") is None
    with pytest.raises(InvalidInputError, match="key: expected text that identifies a write, got None"):
        orders.find_write(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="nothing to confirm"):
        orders.confirm_write("cleanup")


def test_the_tag_of_a_branch_names_no_version_of_the_main_line_that_has_its_number(orders: Table) -> None:
    branch = orders.dataset().create_branch("audit", 1)
    lance.write_dataset(orders.to_arrow(), branch, mode="append")
    orders.dataset().tags.create("audited", ("audit", 2))

    for name in ("at", "restore"):
        with pytest.raises(InvalidInputError, match="tag 'audited' names a version of branch 'audit'"):
            getattr(orders, name)("audited")
    with pytest.raises(TableTagAlreadyExistsError, match="exists, of version 2 of branch 'audit'"):
        orders.tag("audited", 2)
    assert [(one.name, one.version, one.branch) for one in orders.tags()] == [("audited", 2, "audit")]
    assert [one.tags for one in orders.history()] == [(), ()]
    assert orders.version == 2


def test_a_time_at_which_a_version_that_was_cleaned_up_may_have_been_the_newest_finds_no_older_one(
    orders: Table,
) -> None:
    for number in (4, 5):
        orders.append(pa.table({"id": [number], "day": ["2026-11-04"]}))
    committed = {
        one.version: datetime.now(UTC) - timedelta(hours=10 - one.version) for one in orders.history()
    }
    for version, time in committed.items():
        file = Path(orders.location, "_versions", manifest_names(version)[0])
        os.utime(file, times=(time.timestamp(), time.timestamp()))
    late = timedelta(minutes=30)
    assert [orders.at(committed[version] + late).version for version in (1, 2, 3, 4)] == [1, 2, 3, 4]

    orders.tag("kept", 1)
    orders.expire_versions(older_than=timedelta(0))
    for version in (1, 2, 3):
        with pytest.raises(TableVersionNotFoundError, match="1 and 4 are kept, and those between them were"):
            orders.at(committed[version] + late)
    assert orders.at(committed[4] + late).version == 4


@pytest.mark.parametrize("version", [1, "1", "first"])
def test_an_older_version_is_restored(orders: Table, version: Any) -> None:
    orders.tag("first", 1)
    result = orders.restore(version, key="back")

    assert (result.version, result.restored_version) == (3, 1)
    assert [one.version for one in result.undone] == [2]
    assert ids(orders) == [1, 2]
    assert not orders.restore(version, key=WriteIdentity("back", on_existing_key="skip")).is_done
    assert orders.restore(version, key="back").version == 4  # another execution of the same restore


def test_the_history_shows_the_versions_newest_first(orders: Table) -> None:
    orders.tag("first", 1)
    orders.delete("id = 1", key="cleanup")

    found = orders.history()
    assert [(one.version, one.operation, one.key, one.deleted, one.tags) for one in found] == [
        (3, "delete", "cleanup", 1, ()),
        (2, "append", None, 0, ()),
        (1, "overwrite", None, 0, ("first",)),
    ]
    assert all(one.committed_at is not None and one.committed_at.tzinfo is not None for one in found)
    assert [one.version for one in orders.history(limit=2)] == [3, 2]
    assert [one.version for one in orders.at(2).history()] == [2, 1]
    assert found[0].as_dict()["key"] == "cleanup"


def test_the_statistics_tell_what_maintenance_is_due(orders: Table) -> None:
    orders.delete("id = 1")
    found = orders.stats()

    assert (found.version, found.rows, found.deleted_rows, found.fragments, found.versions) == (
        3,
        2,
        1,
        2,
        3,
    )
    assert (found.files, found.bytes > 0, list(found.due)) == (2, True, ["compact"])
    assert "rows are deleted" in found.due["compact"]


def test_a_tag_protects_a_version_until_it_is_deleted(orders: Table) -> None:
    assert orders.tag("first", 1).version == 1
    assert orders.at(1).tag("first").version == 1
    assert orders.tag("newest").version == 2
    assert [(one.name, one.version) for one in orders.tags()] == [("first", 1), ("newest", 2)]
    with pytest.raises(TableTagAlreadyExistsError, match="tag 'first' exists, of version 1"):
        orders.tag("first", 2)
    with pytest.raises(TableTagAlreadyExistsError):
        orders.tag("first", 1, if_exists="fail")
    assert orders.tag("first", 2, if_exists="replace").version == 2
    assert orders.delete_tag("first")
    assert not orders.delete_tag("first", if_missing="skip")
    with pytest.raises(TableTagNotFoundError, match="has no tag 'first'"):
        orders.delete_tag("first")


def test_an_unknown_tag_is_answered_with_the_tags_of_users(orders: Table) -> None:
    orders.append(pa.table({"id": [4], "day": ["2026-11-04"]}), stage=True, key="day")
    orders.tag("first", 1)

    with pytest.raises(TableTagNotFoundError, match=r"has no tag 'fist'; tags: first[.]"):
        orders.at("fist")


def test_a_staged_version_is_not_tagged(orders: Table) -> None:
    staged = orders.append(pa.table({"id": [4], "day": ["2026-11-04"]}), stage=True, key="day")
    before = orders.tags()

    for table in (orders, orders.at(staged.staged_version)):
        with pytest.raises(InvalidInputError, match="is staged, so no tag keeps it; publish it first"):
            table.tag("checked", staged.staged_version)
    assert orders.tags() == before


def test_ages_may_reach_back_before_all_times(orders: Table) -> None:
    ever = timedelta.max
    assert orders.expire_versions(older_than=ever, keys_older_than=ever).outcome == "unchanged"
    assert orders.remove_orphans(older_than=ever).outcome == "unchanged"


def test_a_bookmark_moves_forward_unless_it_may_go_back(orders: Table) -> None:
    orders.at(2).move_bookmark("billing", expires_after=timedelta(days=3))

    with pytest.raises(InvalidInputError, match="bookmark 'billing' is at version 2, and version=1 is older"):
        orders.move_bookmark("billing", 1)
    moved = orders.move_bookmark("billing", 1, allow_older=True)
    assert (moved.name, moved.version, moved.behind) == ("billing", 1, 1)
    assert [one.name for one in orders.bookmarks()] == ["billing"]
    assert orders.delete_bookmark("billing")
    with pytest.raises(TableTagNotFoundError, match="has no bookmark 'billing'"):
        orders.delete_bookmark("billing")


def test_changes_since_a_bookmark_move_it_at_the_end_of_the_block(orders: Table) -> None:
    orders.move_bookmark("billing", 1, expires_after=timedelta(days=3))
    with orders.changes(bookmark="billing") as changes:
        assert (changes.previous_version, changes.version, changes.is_empty) == (1, 2, False)
        assert changes.table.version == 2
        assert orders.bookmarks()[0].version == 1

    assert orders.bookmarks()[0].version == 2
    orders.delete("id = 1")
    assert orders.bookmarks()[0].expires_at is not None  # the move keeps its expiry


def test_a_new_bookmark_begins_with_all_rows(orders: Table) -> None:
    with orders.changes(bookmark="billing") as changes:
        assert (changes.previous_version, changes.version, changes.is_empty) == (0, 2, False)

    assert orders.bookmarks()[0].version == 2


def test_a_bookmark_stays_if_the_block_fails(orders: Table) -> None:
    orders.move_bookmark("billing", 1)
    with pytest.raises(RuntimeError, match="out of money"), orders.changes(bookmark="billing"):
        raise RuntimeError("out of money")

    assert orders.bookmarks()[0].version == 1


def test_a_bookmark_that_others_moved_meanwhile_is_not_moved(orders: Table) -> None:
    orders.move_bookmark("billing", 1)
    orders.delete("id = 1")
    with (
        pytest.raises(ConcurrentModificationError, match="was moved from version 1 to 2"),
        orders.changes(bookmark="billing"),
    ):
        orders.move_bookmark("billing", 2)

    assert orders.bookmarks()[0].version == 2


def test_a_bookmark_does_not_move_back_to_the_version_of_an_older_result(orders: Table) -> None:
    orders.move_bookmark("billing", 2)
    with orders.at(1).changes(bookmark="billing") as changes:
        assert changes.is_empty

    assert orders.bookmarks()[0].version == 2


def test_a_block_does_not_begin_whose_bookmark_could_not_move_to_a_staged_version(orders: Table) -> None:
    orders.move_bookmark("billing", 2)
    staged = orders.append(pa.table({"id": [4], "day": ["2026-11-04"]}), stage=True)
    changes = orders.at(staged.staged_version).changes(bookmark="billing")

    with pytest.raises(InvalidInputError, match="is staged, so that no other version follows it"), changes:
        pytest.fail("the block began")


def test_changes_of_maintenance_alone_are_empty(orders: Table) -> None:
    dataset = orders.dataset()
    dataset.optimize.compact_files()

    assert orders.changes(2).is_empty
    assert not orders.changes(1).is_empty
    assert orders.changes(3).is_empty


def test_a_result_says_since_when_rows_are_changes(lake: LanceCatalog, orders: Table) -> None:
    result = {"table": "orders", "version": 2, "previous_version": 1}

    assert repr(lake.table(result).changes()) == "Changes('orders', after version 1, up to 2)"
    assert lake.table({**result, "previous_version": None}).changes().previous_version == 0
    assert lake.table(result).changes(0).previous_version == 0
    with pytest.raises(InvalidInputError, match="after_version, bookmark: expected one of them, or a table"):
        orders.changes()
    with pytest.raises(InvalidInputError, match="after_version, bookmark: expected one of them, since"):
        orders.changes(1, bookmark="billing")
    with pytest.raises(InvalidInputError, match="if_unavailable: expected one of fail, read_all"):
        orders.changes(1, if_unavailable="skip")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="`with` moves a bookmark"), orders.changes(1):
        pass


def test_columns_are_added_renamed_and_dropped_without_spark(orders: Table) -> None:
    orders.add_columns({"amount": "double"}, expressions={"twice": "id * 2"})
    orders.alter_columns(rename={"amount": "price"})
    orders.drop_columns(["day"])

    assert orders.schema.names == ["id", "price", "twice"]
    assert orders.to_arrow(columns=["twice"], filter="id = 3")["twice"].to_pylist() == [6]


def test_the_last_columns_with_values_are_not_dropped(orders: Table) -> None:
    orders.add_columns({"amount": "double"})
    with pytest.raises(InvalidInputError, match="2 fragments, such as 0, have values of id, day alone"):
        orders.drop_columns(["id", "day"])

    assert orders.drop_columns(["id"]).outcome == "done"
    assert orders.count_rows() == 3


def test_indices_are_listed_and_dropped_without_spark(orders: Table) -> None:
    orders.dataset().create_scalar_index("id", "BTREE")

    [index] = orders.indices()
    assert (index.name, index.column, index.index_type, index.unindexed_rows) == ("id_idx", "id", "BTree", 0)
    assert orders.drop_index("id_idx")
    assert orders.indices() == []
    assert not orders.drop_index("id_idx", if_missing="skip")
    with pytest.raises(TableIndexNotFoundError, match="has no index 'id_idx'"):
        orders.drop_index("id_idx")


@pytest.mark.parametrize(
    ("index_type", "arguments", "message"),
    [
        ("TREE", {}, "index_type: expected one of BTREE, BITMAP.*, got 'TREE'"),
        ("BTREE", {"if_exists": "maybe"}, "if_exists: expected one of skip, extend, replace, fail"),
        ("BTREE", {"segments": 0}, "segments: .*at least 1"),
        ("BTREE", {"index_options": {"metric": "l2"}}, "not an option of BTREE"),
        ("IVF_PQ", {"index_options": {"num_bits": 6}}, r"options\['num_bits'\]: expected one of 8, 4, got 6"),
    ],
)
def test_a_wrong_argument_of_an_index_is_named(
    orders: Table, index_type: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        orders.create_index("id", index_type, **arguments)


def test_old_versions_and_orphans_are_removed_without_spark(orders: Table) -> None:
    looked = orders.expire_versions(older_than=timedelta(0), dry_run=True)
    removed = orders.expire_versions(older_than=timedelta(0))

    assert (looked.versions, removed.versions) == (1, 1)
    assert [one.version for one in orders.history()] == [2]
    assert orders.remove_orphans(dry_run=True).paths == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"older_than": timedelta(-1)}, "older_than: .*at least 0"),
        ({"older_than": 14}, "older_than: expected a timedelta.*got 14"),
        ({"keep_versions": 0}, "keep_versions: .*at least 1"),
        ({"keys_older_than": timedelta(-1)}, "keys_older_than: .*at least 0"),
    ],
)
def test_a_wrong_argument_of_a_clean_up_is_named(
    orders: Table, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        orders.expire_versions(**arguments)


def test_maintenance_with_nothing_due_needs_no_spark(orders: Table) -> None:
    result = orders.maintain(compaction_options={"target_rows_per_fragment": 1000})

    assert (result.outcome, result.done_steps, result.version) == ("unchanged", [], 2)
    assert not orders.compact(thresholds={"min_small_fragments": 10}).is_done
    with pytest.raises(InvalidInputError, match="min_small"):
        orders.compact(thresholds={"min_small_fragments": -1})
    with pytest.raises(InvalidInputError, match="unknown"):
        orders.compact(compaction_options={"unknown": 1})


def test_the_event_of_a_result_has_only_values_that_airflow_encodes(orders: Table) -> None:
    written = orders.append(pa.table({"id": [4], "day": ["2026-11-04"]}))
    added = orders.add_columns({"price": "double"})
    restored = orders.restore(written.version or 0)

    for result in (written, added, restored):
        assert result.event["location"] == orders.location
        assert {type(value) for value in result.event.values()} <= {str, int}


def test_a_staged_version_is_given_by_its_result(lake: LanceCatalog, orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="a result of table orders is expected"):
        orders.publish({"table": "other", "version": 1})
    with pytest.raises(InvalidInputError, match="staged: expected the result of a write with stage=True"):
        orders.publish("staged")
    with pytest.raises(TableVersionNotFoundError, match="has no staged version"):
        orders.discard(f"staged-{2**63 + 5}")
    assert not orders.discard(f"staged-{2**63 + 5}", if_missing="skip")


def test_a_retry_finds_what_it_has_staged_though_the_files_with_the_fingerprint_are_gone(
    orders: Table,
) -> None:
    rows = pa.table({"id": [4], "day": ["2026-11-04"]})
    first = WriteIdentity("day", "a", "redo_if_changed", execution_id="first")
    staged = orders.append(rows, stage=True, key=first)

    found = orders.append(rows, stage=True, key=replace(first, fingerprint=None))

    assert (found.outcome, found.staged_version) == ("found", staged.staged_version)
    unknown = replace(first, fingerprint=None, execution_id="second")
    with pytest.raises(InvalidInputError, match=r"fingerprint: .*the files of the source are gone"):
        orders.append(rows, stage=True, key=unknown)
    assert orders.publish(staged).outcome == "done"


def test_a_staged_write_without_rows_has_nothing_to_publish_or_discard(orders: Table) -> None:
    version = orders.at().version
    empty = orders.to_arrow().slice(0, 0)

    staged = orders.append(empty, stage=True)

    for given in (staged, staged.as_dict()):
        published = orders.publish(given)
        assert (published.outcome, published.previous_version, published.version, published.inserted) == (
            "unchanged",
            version,
            version,
            0,
        )
        assert not orders.discard(given)


def test_a_check_finds_the_versions_that_lack_files(orders: Table) -> None:
    assert orders.check().verdict == "consistent"
    newest = orders.dataset().get_fragments()[-1].metadata.files[0].path
    Path(orders.location, "data", newest).unlink()

    found = orders.check(if_inconsistent="report")
    assert (found.verdict, found.missing_files, found.complete_version) == (
        "files_missing",
        {2: (f"data/{newest}",)},
        1,
    )
    with pytest.raises(
        InvalidTableStateError, match=r"files that were removed, such as data/.*; restore version 1"
    ):
        orders.check()
    assert orders.restore(found.complete_version or 0).version == 3


def test_a_folder_has_no_versions_that_a_catalog_decides(orders: Table) -> None:
    for change in (
        lambda: orders.set_version_authority("catalog"),
        lambda: orders.advance(3, expected_version=2),
        lambda: orders.check(if_inconsistent="adopt"),
    ):
        with pytest.raises(
            UnsupportedOperationError, match="not supported by this catalog, impl=dir; instead: "
        ):
            change()
