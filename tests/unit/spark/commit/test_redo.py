"""Different data under the same key: it replaces what was committed, in one commit, or is refused."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
)

from airflow_provider_lancens.namespace.storage.object_store import RECORDED
from airflow_provider_lancens.spark.commit.append_overwrite import ReplaceWhereCommit
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.delete import Deletion
from airflow_provider_lancens.spark.commit.redo import AppendedRows, check_same_condition, redo_change
from airflow_provider_lancens.spark.commit.table_change import TableChange
from airflow_provider_lancens.spark.commit.upsert import UpsertCommit
from airflow_provider_lancens.spark.keys import Counts, KeyedCommit, KeyedWrite, look_up
from airflow_provider_lancens.spark.keys.key_expiry import maintain_keys
from airflow_provider_lancens.spark.keys.key_records import KeyIndex, digest
from airflow_provider_lancens.spark.maintenance.restore import Restoration
from airflow_provider_lancens.spark.options import WriteIdentity
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.support.prepared_tables import prepare

Write = Callable[..., CommitOutcome]


def rows(target: ResolvedTable) -> list[int]:
    return sorted(lance.dataset(target.dataset.location).to_table()["n"].to_pylist())


def begin(
    target: ResolvedTable, key: str, *numbers: int, mode: str = "append"
) -> Callable[[], CommitOutcome]:
    """Write the files that are to replace a commit; return a function that commits them."""
    lookup = look_up(target, WriteIdentity(key, None, "redo"))
    base = lookup.latest
    assert base is not None
    assert lookup.replaced
    kind = redo_change(mode, base, lookup.replaced, str(target.id))
    table = pa.table({"n": pa.array(numbers, pa.int64())})
    location = base if mode == "append" else target.dataset.location
    fragments = write_fragments(table, location, mode="append" if mode == "append" else "overwrite")
    change = kind(str(target.id), base.version, table.schema, fragments)
    committer = Committer(target, lookup.write, Counts())
    return lambda: committer.commit(change, looked_up_to=base.version)


def of(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def test_the_rows_of_an_append_are_replaced_in_one_commit(target: ResolvedTable, write: Write) -> None:
    write("append", "january", of(1, 2))
    write("append", "february", of(3, 4))
    write("append", "march", of(5))

    outcome = begin(target, "february", 30, 40)()

    assert (outcome.commit.version, outcome.made_here) == (4, True)
    assert rows(target) == [1, 2, 5, 30, 40]
    assert target.open(3).count_rows() == 5


def test_replaced_rows_can_be_replaced_again(target: ResolvedTable, write: Write) -> None:
    write("append", "january", of(1, 2))
    write("append", "february", of(3))
    begin(target, "january", 10)()

    begin(target, "january", 100, 101)()

    assert rows(target) == [3, 100, 101]


def test_row_ids_and_indices_survive_a_replacement(target: ResolvedTable) -> None:
    lance.write_dataset(of(0), target.dataset.location, enable_stable_row_ids=True)
    for key, number in (("january", 1), ("february", 2)):
        Committer(target, KeyedWrite(key), Counts()).commit(prepare(target, "append", of(number)))
    lance.dataset(target.dataset.location).create_scalar_index("n", "BTREE")

    begin(target, "january", 10)()

    dataset = lance.dataset(target.dataset.location)
    ids = dataset.scanner(with_row_id=True).to_table().sort_by("n")
    assert ids["n"].to_pylist() == [0, 2, 10]
    assert len(set(ids["_rowid"].to_pylist())) == 3
    assert dataset.to_table(filter="n = 10")["n"].to_pylist() == [10]
    assert dataset.to_table(filter="n = 1")["n"].to_pylist() == []


@pytest.fixture
def stable(target: ResolvedTable) -> ResolvedTable:
    """A table with stable row ids: a row of its own, and two commits under keys."""
    lance.write_dataset(of(0), target.dataset.location, enable_stable_row_ids=True)
    for key, numbers in (("january", (1, 2)), ("february", (3,))):
        Committer(target, KeyedWrite(key), Counts(len(numbers), 1, 100)).commit(
            prepare(target, "append", of(*numbers))
        )
    return target


def compact(target: ResolvedTable) -> None:
    lance.dataset(target.dataset.location).optimize.compact_files()


def test_compacted_rows_are_replaced_if_row_ids_are_stable(stable: ResolvedTable) -> None:
    compact(stable)
    lance.dataset(stable.dataset.location).create_scalar_index("n", "BTREE")

    begin(stable, "january", 10)()
    assert rows(stable) == [0, 3, 10]
    compact(stable)
    begin(stable, "january", 11, 12)()

    assert rows(stable) == [0, 3, 11, 12]
    assert lance.dataset(stable.dataset.location).to_table(filter="n < 10")["n"].to_pylist() == [0, 3]


def test_rows_are_found_by_the_version_that_created_them_after_it_was_cleaned_up(
    stable: ResolvedTable,
) -> None:
    compact(stable)
    lance.dataset(stable.dataset.location).cleanup_old_versions(timedelta(0))

    begin(stable, "january", 10)()

    assert rows(stable) == [0, 3, 10]


def test_rows_whose_versions_another_client_has_lost_are_not_those_of_the_first_commit(
    stable: ResolvedTable,
) -> None:
    dataset = lance.dataset(stable.dataset.location)
    dataset.delete("n < 3")  # all but the row of another commit
    # Lance reads missing versions as version 1.
    without = [
        replace(fragment.metadata, created_at_version_meta=None, last_updated_at_version_meta=None)
        for fragment in dataset.get_fragments()
    ]
    lance.LanceDataset.commit(
        dataset, lance.LanceOperation.Update([], without, []), read_version=dataset.version
    )

    newest = lance.dataset(stable.dataset.location)
    assert newest.count_rows("_row_created_at_version = 1") == 1
    assert AppendedRows(version=1, rows=1, files=None).removed_from(newest) is None


def test_a_compaction_meanwhile_does_not_prevent_a_replacement(stable: ResolvedTable) -> None:
    replace = begin(stable, "january", 10)
    compact(stable)

    replace()

    assert rows(stable) == [0, 3, 10]


@pytest.mark.parametrize(
    "change",
    [lambda dataset: dataset.update({"n": "20"}, "n = 2"), lambda dataset: dataset.delete("n = 2")],
    ids=["updated", "deleted"],
)
def test_rows_changed_since_are_not_replaced_even_if_they_can_be_told(
    stable: ResolvedTable, change: Callable[[lance.LanceDataset], object]
) -> None:
    change(lance.dataset(stable.dataset.location))
    compact(stable)
    before = rows(stable)

    with pytest.raises(InvalidInputError, match="cannot undo version 2: its rows were deleted or changed"):
        begin(stable, "january", 10)
    assert rows(stable) == before


def test_a_check_of_compacted_rows_writes_nothing(stable: ResolvedTable) -> None:
    compact(stable)
    folder = Path(stable.dataset.location)
    before = sorted(folder.rglob("*"))

    latest = stable.open_latest()
    commit = look_up(stable, WriteIdentity("january", on_existing_key="skip")).earlier
    assert latest is not None
    assert commit is not None
    redo_change("append", latest, [commit], str(stable.id))

    assert sorted(folder.rglob("*")) == before


def test_concurrent_appends_are_kept(target: ResolvedTable, write: Write) -> None:
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
def test_rows_changed_since_are_not_replaced(
    target: ResolvedTable, write: Write, change: Callable[[lance.LanceDataset], object], when: str
) -> None:
    write("append", "january", of(1, 2))
    write("append", "february", of(3))
    replace = begin(target, "january", 10) if when == "meanwhile" else None
    change(lance.dataset(target.dataset.location))
    before = rows(target)

    if replace is None:
        with pytest.raises(InvalidInputError, match="cannot undo version 1"):
            begin(target, "january", 10)
    else:
        with pytest.raises(ConcurrentModificationError, match="run it again"):
            replace()
    assert rows(target) == before


def test_a_commit_known_only_from_the_write_log_is_not_replaced(target: ResolvedTable, write: Write) -> None:
    write("append", "january")
    latest = target.open_latest()
    assert latest is not None

    with pytest.raises(InvalidInputError, match="cleaned up"):
        redo_change("append", latest, [KeyedCommit(7)], "db$t")


def test_an_overwrite_is_repeated_despite_maintenance(target: ResolvedTable, write: Write) -> None:
    write("append", "december", of(0))
    write("overwrite", "january", of(1, 2))
    lance.dataset(target.dataset.location).update_config({"touched": "yes"})

    begin(target, "january", 10, mode="overwrite")()

    assert rows(target) == [10]


def test_an_overwrite_is_not_repeated_over_rows_of_other_writers(target: ResolvedTable, write: Write) -> None:
    write("overwrite", "january", of(1, 2))
    write("append", "february", of(3))

    with pytest.raises(InvalidInputError, match="other writers have changed rows"):
        begin(target, "january", 10, mode="overwrite")
    assert rows(target) == [1, 2, 3]


@pytest.mark.parametrize(("committed", "now"), [("a", "a"), ("", "a"), ("a", "")])
def test_a_missing_fingerprint_equals_any(committed: str, now: str) -> None:
    commit = KeyedCommit(3, fingerprint=committed)

    assert KeyedWrite("january", now).is_done_by(commit)


def test_the_refusal_of_different_data_says_what_to_do(target: ResolvedTable) -> None:
    Committer(target, KeyedWrite("january", digest("a")), Counts()).commit(prepare(target, "append"))

    with pytest.raises(InvalidInputError) as refusal:
        look_up(target, WriteIdentity("january", "b", "skip"))
    for text in (
        "table db$orders",
        "version 1",
        "'january'",
        "on_existing_key='redo'",
        "Use another key",
    ):
        assert text in str(refusal.value)
    lookup = look_up(target, WriteIdentity("january", "b", "redo"))
    assert lookup.earlier is None
    assert lookup.replaced
    assert look_up(target, WriteIdentity("january", "a", "skip")).earlier is not None


def test_a_retry_finds_its_commit_though_the_files_with_the_fingerprint_are_gone(
    target: ResolvedTable,
) -> None:
    change = prepare(target, "append")
    Committer(target, KeyedWrite("january", digest("a"), execution_id="first"), Counts()).commit(change)

    lookup = look_up(target, WriteIdentity("january", None, "redo_if_changed", "first"))

    assert lookup.earlier is not None
    with pytest.raises(InvalidInputError, match=r"fingerprint: .*the files of the source are gone"):
        look_up(target, WriteIdentity("january", None, "redo_if_changed", "second"))


def test_two_drivers_with_one_key_and_different_data_write_only_one(
    target: ResolvedTable, write: Write
) -> None:
    write("append", "december", of(0))
    slow, fast = prepare(target, "append", of(1)), prepare(target, "append", of(2))
    Committer(target, KeyedWrite("january", "fast"), Counts()).commit(fast)

    found = "another run committed under idempotency key 'january' as version 2; nothing was committed"
    with pytest.raises(ConcurrentModificationError, match=found):
        Committer(target, KeyedWrite("january", "slow"), Counts()).commit(slow)
    assert rows(target) == [0, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": " "}, "blank"),
        ({"key": "k", "on_existing_key": "fail"}, "redo, redo_if_changed, skip"),
    ],
)
def test_an_invalid_argument_is_named(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        WriteIdentity(**arguments)  # type: ignore[arg-type]


def of_kind(target: ResolvedTable, kind: str) -> None:
    """Commit a change of this kind under the key january, on a table with two rows."""
    Committer(target, KeyedWrite("december"), Counts()).commit(prepare(target, "append", of(0, 1)))
    rows = prepare(target, "append", of(1, 2))
    base = (rows.table, rows.base, rows.schema)
    changes: dict[str, TableChange] = {
        "upsert": UpsertCommit(*base, rows.fragments, keys=of(1, 2)),
        "replace_where": ReplaceWhereCommit(*base, rows.fragments, condition="n > 0"),
        "deletion": Deletion(*base, [], where="n = 1"),
        "restore": Restoration(*base, [], version=1),
        "overwrite": prepare(target, "overwrite", of(7)),
    }
    Committer(target, KeyedWrite("january"), Counts(2)).commit(changes[kind], looked_up_to=1)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "upsert",
            "was an upsert; an append can't replace it, since the rows that it replaced",
        ),
        ("replace_where", "replaced the rows that match a condition; an append can't"),
        ("deletion", "deleted rows; an append can't"),
        ("restore", "restored an older version; an append can't"),
        ("overwrite", "overwrote the table; an append can't"),
    ],
)
@pytest.mark.parametrize("is_kept", [True, False])
def test_an_append_replaces_nothing_that_cannot_be_undone(
    target: ResolvedTable, kind: str, said: str, is_kept: bool
) -> None:
    of_kind(target, kind)
    if not is_kept:
        Committer(target, KeyedWrite("february"), Counts()).commit(prepare(target, "append", of(9)))
        lance.dataset(target.dataset.location).cleanup_old_versions(timedelta(0))
    before = rows(target)

    with pytest.raises(InvalidInputError, match=re.escape(said)):
        begin(target, "january", 10)
    assert rows(target) == before


@pytest.mark.parametrize("again", [1, 2])
def test_all_that_the_key_wrote_is_replaced(target: ResolvedTable, write: Write, again: int) -> None:
    write("append", "december", of(0))
    write("append", "january", of(1))
    for number in range(again):
        lookup = look_up(target, WriteIdentity("january", None, "write_again"))
        Committer(target, lookup.write, Counts(1)).commit(
            prepare(target, "append", of(2 + number)), lookup.version
        )

    begin(target, "january", 10)()
    assert rows(target) == [0, 10]
    begin(target, "january", 20)()
    assert rows(target) == [0, 20]


def clean_up_and_lose_the_records(target: ResolvedTable) -> None:
    lance.dataset(target.dataset.location).cleanup_old_versions(timedelta(0))
    shutil.rmtree(Path(target.dataset.location, RECORDED))


def let_keys_expire(target: ResolvedTable) -> None:
    latest = target.open_latest()
    assert latest is not None
    maintain_keys(target, latest, datetime.now(UTC) + timedelta(days=1))


@pytest.mark.parametrize(
    ("lose", "error", "said"),
    [
        (clean_up_and_lose_the_records, InvalidTableStateError, "call Table.accept_lost_keys"),
        (let_keys_expire, InvalidInputError, "has expired since by keys_older_than"),
    ],
)
def test_rows_of_the_key_that_may_have_been_forgotten_are_not_left_behind(
    target: ResolvedTable,
    write: Write,
    lose: Callable[[ResolvedTable], None],
    error: type[Exception],
    said: str,
) -> None:
    for key, number in (("december", 0), ("january", 1), ("february", 2)):
        write("append", key, of(number))
    lose(target)
    lookup = look_up(target, WriteIdentity("january", None, "write_again"))
    Committer(target, lookup.write, Counts(1)).commit(prepare(target, "append", of(3)), lookup.version)

    with pytest.raises(error, match=re.escape(said)):
        begin(target, "january", 10)
    assert rows(target) == [0, 1, 2, 3]


def test_after_a_loss_of_records_a_key_is_replaced_once_the_loss_is_accepted(
    target: ResolvedTable, write: Write
) -> None:
    for key, number in (("december", 0), ("january", 1)):
        write("append", key, of(number))
    clean_up_and_lose_the_records(target)
    with pytest.raises(InvalidTableStateError, match=r"also committed before version 2"):
        begin(target, "january", 10)

    KeyIndex.of(target.dataset.manifests).accept_lost()
    begin(target, "january", 10)()

    assert rows(target) == [0, 10]


def test_rows_of_another_condition_are_not_left_behind(target: ResolvedTable) -> None:
    of_kind(target, "replace_where")
    latest = target.open_latest()
    replaced = look_up(target, WriteIdentity("january", None, "redo")).replaced
    assert latest is not None

    check_same_condition("n > 0", latest, replaced, "db$t")
    with pytest.raises(InvalidInputError, match="overwrite with this condition can't replace it"):
        check_same_condition("n > 1", latest, replaced, "db$t")
