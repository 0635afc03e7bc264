"""Upsert on keys: what is committed, also beside concurrent writers, and which keys are refused."""

import itertools
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError

from airflow_provider_lancens.spark.commit.append_overwrite import ReplaceWhereCommit
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.upsert import UpsertCommit, check_keys, read_keys
from airflow_provider_lancens.spark.keys import Counts, KeyedCommit, KeyedWrite
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

Rows = dict[int, str]


def table_of(rows: Rows) -> pa.Table:
    return pa.table({"id": pa.array(rows.keys(), pa.int64()), "v": pa.array(rows.values(), pa.string())})


def begin(target: ResolvedTable, rows: pa.Table, on: Sequence[str] = ("id",)) -> UpsertCommit:
    """Write the files, while the table is at its latest version."""
    base = target.open_latest()
    fragments = write_fragments(
        rows,
        target.dataset.location if base is None else base,
        mode="overwrite" if base is None else "append",
        max_rows_per_file=2,
    )
    columns = pa.schema([rows.schema.field(name) for name in on])
    keys = read_keys(target.dataset, fragments, columns, None, "db$t")
    return UpsertCommit("db$t", None if base is None else base.version, rows.schema, fragments, keys)


def commit(target: ResolvedTable, change: UpsertCommit, key: str) -> CommitOutcome:
    return Committer(target, KeyedWrite(key), Counts(1, 1, 1)).commit(change)


def upsert(target: ResolvedTable, key: str, rows: Rows) -> CommitOutcome:
    return commit(target, begin(target, table_of(rows)), key)


def content(target: ResolvedTable) -> list[tuple[int, str]]:
    rows = lance.dataset(target.dataset.location).to_table().sort_by("id").to_pylist()
    return [(row["id"], row["v"]) for row in rows]


@pytest.fixture
def before(target: ResolvedTable) -> ResolvedTable:
    """A table of four rows in two fragments."""
    upsert(target, "december", {1: "a", 2: "b", 3: "c", 4: "d"})
    return target


def test_the_first_upsert_creates_the_data_set(before: ResolvedTable) -> None:
    assert content(before) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert before.latest_version() == 1


def test_rows_with_the_same_key_are_replaced_in_one_commit(before: ResolvedTable) -> None:
    outcome = upsert(before, "january", {1: "A", 2: "B", 4: "D", 9: "z"})

    assert (outcome.commit.version, outcome.made_here) == (2, True)
    assert content(before) == [(1, "A"), (2, "B"), (3, "c"), (4, "D"), (9, "z")]


def test_the_same_key_is_committed_once(before: ResolvedTable) -> None:
    upsert(before, "january", {1: "A"})
    upsert(before, "february", {1: "AA"})

    again = upsert(before, "january", {1: "A"})

    assert (again.commit.version, again.made_here) == (2, False)
    assert content(before)[0] == (1, "AA")


def test_two_upserts_of_one_key_leave_one_row(before: ResolvedTable) -> None:
    slow, fast = [begin(before, table_of({1: who, 7: who})) for who in ("slow", "fast")]

    commit(before, fast, "fast")
    commit(before, slow, "slow")

    assert content(before) == [(1, "slow"), (2, "b"), (3, "c"), (4, "d"), (7, "slow")]


@pytest.mark.parametrize(
    "maintain",
    [
        lambda dataset: dataset.optimize.compact_files(),
        lambda dataset: dataset.create_scalar_index("id", "BTREE"),
        lambda dataset: dataset.delete("id = 4"),
    ],
    ids=["compaction", "index", "delete"],
)
def test_an_upsert_is_repeated_after_concurrent_maintenance(
    before: ResolvedTable, maintain: Callable[[lance.LanceDataset], object]
) -> None:
    change = begin(before, table_of({1: "A", 4: "D"}))
    maintain(lance.dataset(before.dataset.location))

    commit(before, change, "january")

    assert content(before) == [(1, "A"), (2, "b"), (3, "c"), (4, "D")]


def test_an_index_on_the_key_stays_correct(before: ResolvedTable) -> None:
    lance.dataset(before.dataset.location).create_scalar_index("id", "BTREE")

    upsert(before, "january", {1: "A", 9: "z"})
    upsert(before, "february", {9: "Z"})

    dataset = lance.dataset(before.dataset.location)
    for key, value in ((1, "A"), (2, "b"), (9, "Z")):
        assert dataset.to_table(filter=f"id = {key}")["v"].to_pylist() == [value]


def test_stable_row_ids_stay_unique(target: ResolvedTable) -> None:
    location = target.dataset.location
    lance.write_dataset(table_of({1: "a", 2: "b"}), location, enable_stable_row_ids=True)

    upsert(target, "january", {2: "B", 3: "c"})

    rows = lance.dataset(location).scanner(with_row_id=True).to_table()
    assert len(set(rows["_rowid"].to_pylist())) == 3
    assert content(target) == [(1, "a"), (2, "B"), (3, "c")]


def test_several_columns_can_be_the_key(target: ResolvedTable) -> None:
    first = pa.table({"a": [1, 1], "b": ["x", "y"], "v": [1, 2]})
    commit(target, begin(target, first, on=("b", "a")), "first")

    second = pa.table({"a": [1, 2], "b": ["y", "y"], "v": [20, 30]})
    commit(target, begin(target, second, on=("b", "a")), "second")

    rows = lance.dataset(target.dataset.location).to_table().sort_by("v").to_pylist()
    assert [(row["a"], row["b"], row["v"]) for row in rows] == [(1, "x", 1), (1, "y", 20), (2, "y", 30)]


def test_an_upsert_is_refused_after_a_concurrent_first_write(target: ResolvedTable) -> None:
    slow, fast = begin(target, table_of({1: "slow"})), begin(target, table_of({1: "fast"}))
    commit(target, fast, "fast")

    with pytest.raises(ConcurrentModificationError, match="run it again"):
        commit(target, slow, "slow")
    assert content(target) == [(1, "fast")]


def test_a_column_that_was_replaced_by_one_of_the_same_name_is_refused(before: ResolvedTable) -> None:
    """Its values would be null: they are stored under the id of the earlier column."""
    change = begin(before, table_of({2: "B"}))
    dataset = lance.dataset(before.dataset.location)
    dataset.drop_columns(["v"])
    dataset.add_columns(pa.schema([("v", pa.string())]))

    with pytest.raises(ConcurrentModificationError, match="changed its columns"):
        commit(before, change, "january")


def test_a_concurrent_change_of_columns_is_refused(before: ResolvedTable) -> None:
    change = begin(before, table_of({1: "A"}))
    lance.dataset(before.dataset.location).add_columns({"m": "id + 1"})

    with pytest.raises(ConcurrentModificationError, match="changed its columns"):
        commit(before, change, "january")


@pytest.mark.parametrize("rows", [{"id": [7, 7, 8]}, {"id": [1, 2, 1]}], ids=["new", "there"])
def test_duplicate_keys_are_refused_by_name(before: ResolvedTable, rows: dict[str, list[int]]) -> None:
    doubled = pa.table({"id": rows["id"], "v": ["x", "y", "z"]})

    with pytest.raises(InvalidInputError, match=rf"1 keys are in more than one row.*'id': {rows['id'][0]}"):
        begin(before, doubled)


def test_a_null_key_is_refused(before: ResolvedTable) -> None:
    with pytest.raises(InvalidInputError, match="id is null in 1 rows"):
        begin(before, pa.table({"id": pa.array([5, None], pa.int64()), "v": ["x", "y"]}))


@pytest.mark.parametrize(
    ("on", "message"),
    [("gone", "column 'gone' does not exist"), ("tags", "cannot be a key"), ("nothing", "cannot be a key")],
)
def test_an_unsupported_key_column_is_refused(on: str, message: str) -> None:
    schema = pa.schema({"id": pa.int64(), "tags": pa.list_(pa.string()), "nothing": pa.null()})

    with pytest.raises(InvalidInputError, match=message):
        check_keys([on], schema, "db$t")


ODD_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]


@pytest.mark.parametrize(
    ("stored", "given"),
    [(0.0, -0.0), (-0.0, 0.0), (math.nan, -math.nan), (ODD_NAN, math.nan), (math.nan, ODD_NAN)],
    ids=["minus zero", "zero", "minus nan", "nan", "odd nan"],
)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
def test_zeros_are_one_key_and_so_are_nans(
    target: ResolvedTable, kind: pa.DataType, stored: float, given: float
) -> None:
    def rows(key: float, value: int) -> pa.Table:
        return pa.table({"k": pa.array([key, 1.5]).cast(kind), "v": [value, value]})

    commit(target, begin(target, rows(stored, 1), on=("k",)), "first")
    commit(target, begin(target, rows(given, 2), on=("k",)), "second")

    assert lance.dataset(target.dataset.location).to_table()["v"].to_pylist() == [2, 2]


def test_zeros_and_nans_of_several_key_columns_are_equal_in_each_combination(target: ResolvedTable) -> None:
    def rows(value: int, *numbers: float) -> pa.Table:
        first, second = zip(*itertools.product(numbers, numbers), strict=True)
        return pa.table({"j": first, "k": second, "v": [value] * len(first)})

    commit(target, begin(target, rows(1, 0.0, ODD_NAN, 1.5), on=("j", "k")), "first")
    commit(target, begin(target, rows(2, -0.0, math.nan, 1.5), on=("j", "k")), "second")

    assert lance.dataset(target.dataset.location).to_table()["v"].to_pylist() == [2] * 9


def test_zeros_of_both_signs_in_the_source_are_one_key_twice(target: ResolvedTable) -> None:
    rows = pa.table({"k": [0.0, -0.0], "v": [1, 2]})

    with pytest.raises(InvalidInputError, match="1 keys are in more than one row of the source"):
        begin(target, rows, on=("k",))


def test_a_key_that_the_table_has_twice_is_not_blamed_on_the_source(before: ResolvedTable) -> None:
    lance.write_dataset(table_of({1: "again"}), before.dataset.location, mode="append")
    latest = before.open_latest()
    assert latest is not None
    updated = table_of({1: "x"})
    fragments = write_fragments(pa.concat_tables([updated, updated]), latest, mode="append")

    with pytest.raises(InvalidInputError, match=r"1 keys are in more than one row of the table, .*'id': 1"):
        read_keys(before.dataset, fragments, pa.schema([("id", pa.int64())]), None, "db$t", compared=latest)


def compared(target: ResolvedTable, rows: Rows) -> UpsertCommit:
    """An upsert of rows that were chosen by comparing them with the table."""
    return replace(begin(target, table_of(rows)), compared=True)


def test_an_upsert_of_compared_rows_brings_no_deleted_row_back(before: ResolvedTable) -> None:
    change, other = compared(before, {1: "A"}), compared(before, {4: "D"})
    lance.dataset(before.dataset.location).delete("id = 1")

    with pytest.raises(ConcurrentModificationError, match="other writers deleted rows with the same id"):
        commit(before, change, "of the deleted row")
    commit(before, other, "of another row")

    assert content(before) == [(2, "b"), (3, "c"), (4, "D")]


def test_an_upsert_of_compared_rows_sees_a_row_that_a_restore_brings_back(before: ResolvedTable) -> None:
    dataset = lance.dataset(before.dataset.location)
    dataset.delete("id = 1")
    change = compared(before, {1: "A"})
    dataset.checkout_version(1).restore()

    with pytest.raises(ConcurrentModificationError, match="other writers wrote rows with the same id"):
        commit(before, change, "k")

    assert content(before)[0] == (1, "a")


def rewrite_in_place(dataset: lance.LanceDataset) -> None:
    """Write a column of the first row anew, as another client: the fragment and its addresses stay."""
    [fragment, *_] = dataset.get_fragments()
    updated, fields = fragment.update_columns(pa.table({"id": [1], "v": ["theirs"]}), left_on="id")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, removed_fragment_ids=[], new_fragments=[]
    )
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


@pytest.mark.parametrize("restored", [False, True])
def test_a_column_that_others_write_in_place_conflicts_with_an_upsert_of_compared_rows(
    before: ResolvedTable, restored: bool
) -> None:
    dataset = lance.dataset(before.dataset.location)
    if restored:
        rewrite_in_place(dataset)
    change, other = compared(before, {1: "A"}), compared(before, {9: "z"})
    if restored:
        lance.dataset(before.dataset.location).checkout_version(1).restore()
    else:
        rewrite_in_place(dataset)

    with pytest.raises(ConcurrentModificationError, match="other writers wrote rows with the same id"):
        commit(before, change, "of the row")
    commit(before, other, "of another row")

    assert content(before)[0] == (1, "a" if restored else "theirs")


def test_a_column_that_others_write_in_place_conflicts_with_a_replacement(before: ResolvedTable) -> None:
    change = replacement(before, {2: "new"})
    rewrite_in_place(lance.dataset(before.dataset.location))

    with pytest.raises(ConcurrentModificationError, match="other writers wrote rows where id < 3"):
        Committer(before, KeyedWrite("k"), Counts(1, 1, 1)).commit(change)


def test_a_replacement_sees_a_row_that_a_restore_brings_back(before: ResolvedTable) -> None:
    dataset = lance.dataset(before.dataset.location)
    dataset.delete("id = 1")
    change = replacement(before, {2: "new"})
    dataset.checkout_version(1).restore()

    with pytest.raises(ConcurrentModificationError, match="other writers wrote rows where id < 3"):
        Committer(before, KeyedWrite("k"), Counts(1, 1, 1)).commit(change)


def _compact(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files()
    lance.write_dataset(table_of({9: "theirs"}), dataset.uri, mode="append")


def _compact_with_index(dataset: lance.LanceDataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    _compact(dataset)


def _write_as_they_are(dataset: lance.LanceDataset) -> None:
    dataset.update({"v": "v"}, where="id < 4")
    lance.write_dataset(table_of({9: "theirs"}), dataset.uri, mode="append")


def _delete_and_restore(dataset: lance.LanceDataset) -> None:
    version = dataset.version
    lance.write_dataset(table_of({9: "theirs"}), dataset.uri, mode="overwrite")
    dataset.checkout_version(version).restore()
    lance.write_dataset(table_of({9: "theirs"}), dataset.uri, mode="append")


MOVES = [_compact, _compact_with_index, _write_as_they_are, _delete_and_restore]


@pytest.mark.parametrize("move", MOVES)
def test_rows_that_others_only_moved_do_not_conflict_with_an_upsert_of_compared_rows(
    before: ResolvedTable, move: Callable[[lance.LanceDataset], None]
) -> None:
    change = compared(before, {1: "A", 8: "z"})
    move(lance.dataset(before.dataset.location))

    commit(before, change, "k")

    assert content(before) == [(1, "A"), (2, "b"), (3, "c"), (4, "d"), (8, "z"), (9, "theirs")]


@pytest.mark.parametrize("move", MOVES)
def test_rows_that_others_only_moved_do_not_conflict_with_a_replacement(
    before: ResolvedTable, move: Callable[[lance.LanceDataset], None]
) -> None:
    change = replacement(before, {2: "new"})
    move(lance.dataset(before.dataset.location))

    Committer(before, KeyedWrite("k"), Counts(1, 1, 1)).commit(change)

    assert content(before) == [(2, "new"), (3, "c"), (4, "d"), (9, "theirs")]


def replacement(target: ResolvedTable, rows: Rows) -> ReplaceWhereCommit:
    """A replacement of the rows whose ids are lower than 3."""
    written = begin(target, table_of(rows))
    return ReplaceWhereCommit(written.table, written.base, written.schema, written.fragments, "id < 3")


@pytest.mark.parametrize("theirs", [{1: "theirs"}, {1: "a"}], ids=["other values", "one more of them"])
def test_rows_that_others_wrote_conflict_although_others_moved_the_rest(
    before: ResolvedTable, theirs: Rows
) -> None:
    changes = compared(before, {1: "A"}), replacement(before, {2: "new"})
    dataset = lance.dataset(before.dataset.location)
    lance.write_dataset(table_of(theirs), dataset.uri, mode="append")
    lance.dataset(dataset.uri).optimize.compact_files()

    for number, change in enumerate(changes):
        with pytest.raises(ConcurrentModificationError, match="other writers wrote rows w"):
            Committer(before, KeyedWrite(f"k{number}"), Counts(1, 1, 1)).commit(change)
    assert len(content(before)) == 5


def test_blobs_that_others_moved_conflict_since_they_are_not_compared(target: ResolvedTable) -> None:
    def rows(*values: bytes) -> pa.Table:
        blob = pa.field("v", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        schema = pa.schema([pa.field("id", pa.int64()), blob])
        return pa.table([list(range(len(values))), list(values)], schema=schema)

    commit(target, begin(target, rows(b"1", b"2", b"3")), "december")
    dataset = lance.dataset(target.dataset.location)
    change = replace(begin(target, rows(b"4")), schema=dataset.schema, compared=True)
    dataset.optimize.compact_files()
    lance.write_dataset(rows(b"9").set_column(0, "id", pa.array([9])), dataset.uri, mode="append")

    with pytest.raises(ConcurrentModificationError, match="other writers wrote rows with the same id"):
        commit(target, change, "k")


def test_inserted_updated_and_deleted_rows_are_counted(before: ResolvedTable) -> None:
    change = begin(before, table_of({1: "A", 2: "B", 9: "z"}))
    deletions = pa.table({"id": [4, 77]})
    outcome = commit(
        before, replace(change, keys=pa.concat_tables([change.keys, deletions]), deletions=deletions), "k"
    )

    assert (outcome.commit.counts.updated, outcome.commit.counts.deleted) == (2, 1)
    again = commit(before, change, "k")
    assert (again.made_here, again.commit.counts) == (False, outcome.commit.counts)
    assert content(before) == [(1, "A"), (2, "B"), (3, "c"), (9, "z")]


def test_the_result_of_an_upsert_tells_what_it_did_to_rows(before: ResolvedTable) -> None:
    counts = Counts(rows=5, files=1, bytes=10, updated=2, deleted=1)
    result = KeyedCommit(2, counts=counts, kind="upsert").result(before, 0, "done", key="january")

    assert (result.operation, result.outcome, result.key) == ("upsert", "done", "january")
    assert result.changes == {"inserted": 3, "updated": 2, "deleted": 1}
    assert result.event == {"operation": "upsert", **result.changes, "location": before.dataset.location}
    assert type(result.as_dict()["location"]) is str, "Airflow encodes text of no other type"
    assert "5 rows, 1 file, 10 bytes, 2 updated, 1 deleted" in str(result)
