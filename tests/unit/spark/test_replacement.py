"""Other data under the same key: put in the place of what was committed, in one commit, or refused."""

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError

from airflow_provider_lancens.spark.commit import Committer, Outcome
from airflow_provider_lancens.spark.history import Commit, Counts, find_commit
from airflow_provider_lancens.spark.naming import WriteName
from airflow_provider_lancens.spark.replacement import replacing
from airflow_provider_lancens.spark.target import Target
from tests.unit.spark.conftest import prepare

Write = Callable[..., Outcome]


def rows(target: Target) -> list[int]:
    return sorted(lance.dataset(target.dataset.location).to_table()["n"].to_pylist())


def begin(target: Target, key: str, *numbers: int, mode: str = "append") -> Callable[[], Outcome]:
    """Write the files that are to replace a commit; what is returned commits them."""
    base = target.open_latest()
    assert base is not None
    found = find_commit(base, key)
    assert found is not None
    kind = replacing(mode, base, found, str(target.id))
    table = pa.table({"n": pa.array(numbers, pa.int64())})
    location = base if mode == "append" else target.dataset.location
    fragments = write_fragments(table, location, mode="append" if mode == "append" else "overwrite")
    change = kind(str(target.id), base.version, table.schema, fragments)
    return lambda: Committer(target, key, Counts()).commit(change, looked_up_to=base.version)


def of(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def test_an_appends_rows_are_replaced_in_one_commit(target: Target, write: Write) -> None:
    write("append", "january", of(1, 2))
    write("append", "february", of(3, 4))
    write("append", "march", of(5))

    outcome = begin(target, "february", 30, 40)()

    assert (outcome.commit.version, outcome.made_here) == (4, True)
    assert rows(target) == [1, 2, 5, 30, 40]
    assert target.open(3).count_rows() == 5


def test_what_was_replaced_can_be_replaced_again(target: Target, write: Write) -> None:
    write("append", "january", of(1, 2))
    write("append", "february", of(3))
    begin(target, "january", 10)()

    begin(target, "january", 100, 101)()

    assert rows(target) == [3, 100, 101]


def test_row_ids_and_indices_survive_a_replacement(target: Target) -> None:
    lance.write_dataset(of(0), target.dataset.location, enable_stable_row_ids=True)
    for key, number in (("january", 1), ("february", 2)):
        Committer(target, key, Counts()).commit(prepare(target, "append", of(number)))
    lance.dataset(target.dataset.location).create_scalar_index("n", "BTREE")

    begin(target, "january", 10)()

    dataset = lance.dataset(target.dataset.location)
    ids = dataset.scanner(with_row_id=True).to_table().sort_by("n")
    assert ids["n"].to_pylist() == [0, 2, 10]
    assert len(set(ids["_rowid"].to_pylist())) == 3
    assert dataset.to_table(filter="n = 10")["n"].to_pylist() == [10]
    assert dataset.to_table(filter="n = 1")["n"].to_pylist() == []


def test_appends_of_others_meanwhile_stay(target: Target, write: Write) -> None:
    write("append", "january", of(1))
    replace = begin(target, "january", 10)
    write("append", "february", of(2))

    replace()

    assert rows(target) == [2, 10]


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.optimize.compact_files(),
        lambda dataset: dataset.delete("n = 1"),
        lambda dataset: dataset.add_columns({"m": "n + 1"}),
        lambda dataset: lance.write_dataset(of(7), dataset.uri, mode="overwrite"),
    ],
    ids=["compacted", "deleted", "widened", "overwritten"],
)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_rows_that_were_touched_since_are_not_taken_back(
    target: Target, write: Write, change: Callable[[lance.LanceDataset], object], when: str
) -> None:
    write("append", "january", of(1, 2))
    write("append", "february", of(3))
    replace = begin(target, "january", 10) if when == "meanwhile" else None
    change(lance.dataset(target.dataset.location))
    before = rows(target)

    if replace is None:
        with pytest.raises(InvalidInputError, match="can't take back version 1"):
            begin(target, "january", 10)
    else:
        with pytest.raises(ConcurrentModificationError, match="run it again"):
            replace()
    assert rows(target) == before


def test_a_commit_that_only_an_entry_remembers_is_not_taken_back(target: Target, write: Write) -> None:
    write("append", "january")
    latest = target.open_latest()
    assert latest is not None

    with pytest.raises(InvalidInputError, match="cleaned up"):
        replacing("append", latest, Commit(7, "", Counts()), "db$t")


def test_an_overwrite_is_made_again_over_maintenance(target: Target, write: Write) -> None:
    write("append", "december", of(0))
    write("overwrite", "january", of(1, 2))
    lance.dataset(target.dataset.location).update_config({"touched": "yes"})

    begin(target, "january", 10, mode="overwrite")()

    assert rows(target) == [10]


def test_an_overwrite_is_not_made_again_over_rows_of_others(target: Target, write: Write) -> None:
    write("overwrite", "january", of(1, 2))
    write("append", "february", of(3))

    with pytest.raises(InvalidInputError, match="others have changed rows"):
        begin(target, "january", 10, mode="overwrite")
    assert rows(target) == [1, 2, 3]


@pytest.mark.parametrize(("committed", "now"), [("a", "a"), ("", "a"), ("a", "")])
def test_a_fingerprint_that_is_missing_is_equal_to_any(committed: str, now: str) -> None:
    commit = Commit(3, "uuid", Counts(), WriteName.of("k", committed).fingerprint)

    assert WriteName.of("k", now).is_made_by(commit, "db$t")


def test_other_data_is_refused_in_words(target: Target) -> None:
    commit = Commit(3, "uuid", Counts(), WriteName.of("k", "a").fingerprint)

    with pytest.raises(InvalidInputError) as refusal:
        WriteName.of("january", "b").is_made_by(commit, "db$t")
    for words in ("table db$t", "version 3", "'january'", "on_changed='replace'", "Another key"):
        assert words in str(refusal.value)
    assert not WriteName.of("january", "b", "replace").is_made_by(commit, "db$t")


def test_two_drivers_with_one_key_and_different_data_do_not_mix(target: Target, write: Write) -> None:
    write("append", "december", of(0))
    slow, fast = prepare(target, "append", of(1)), prepare(target, "append", of(2))
    Committer(target, "january", Counts(), fingerprint="fast").commit(fast)

    with pytest.raises(ConcurrentModificationError, match="other data under idempotency key 'january'"):
        Committer(target, "january", Counts(), fingerprint="slow").commit(slow)
    assert rows(target) == [0, 2]


@pytest.mark.parametrize(
    ("arguments", "words"), [({"key": " "}, "blank"), ({"key": "k", "on_changed": "skip"}, "fail, replace")]
)
def test_an_argument_that_cannot_be_is_named(arguments: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        WriteName.of(**arguments)  # type: ignore[arg-type]
