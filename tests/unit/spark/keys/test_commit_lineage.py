"""A commit states which transactions made the versions below it, so that a rerun stops reading there."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.spark.commit.committer import CommitOutcome
from airflow_provider_lancens.spark.keys import commit_lineage
from airflow_provider_lancens.spark.keys.commit_lineage import LINEAGE, Lineage, transaction_id
from airflow_provider_lancens.spark.keys.key_records import INDEX
from airflow_provider_lancens.spark.table import history
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.keys.keyed import find, touch, versions_read

Write = Callable[..., CommitOutcome]


def stated(target: ResolvedTable, version: int) -> Lineage:
    transaction = history.read_transaction(lance.dataset(target.dataset.location), version)
    assert transaction is not None
    found = Lineage.stated_by(transaction, version)
    assert found is not None
    return found


def clean_up(target: ResolvedTable) -> None:
    lance.dataset(target.dataset.location).cleanup_old_versions(timedelta(0))


def segments(target: ResolvedTable) -> list[Path]:
    return sorted((Path(target.dataset.location) / INDEX).glob("lineage-*.json"))


@pytest.mark.parametrize(("of_others", "since"), [(0, 1), (20, 1), (70, 8)])
def test_a_commit_states_it_down_to_the_last_one_below_commits_of_others(
    target: ResolvedTable, write: Write, of_others: int, since: int
) -> None:
    write("append", "january")
    touch(target, of_others)

    found = stated(target, write("append", "february").commit.version)

    assert found.since == since
    assert found.version == 1 + of_others


@pytest.mark.parametrize("of_others", [0, 3, 20, 40, 70])
def test_a_restore_of_another_client_is_known_below_later_commits(
    target: ResolvedTable, write: Write, of_others: int
) -> None:
    for key in ("january", "february"):
        write("append", key)
    target.open(1).restore()
    touch(target, of_others)
    for key in ("march", "april"):
        write("append", key)

    assert find(target, "january") == 1
    assert find(target, "february") is None
    assert find(target, "march") == 4 + of_others


def test_ids_move_to_segments_and_keys_below_them_are_known_after_a_clean_up(
    target: ResolvedTable, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.spark.keys.key_attempts.LONG", 4)
    for number in range(6):
        write("append", f"day-{number}")
    target.open(5).restore()
    for number in range(6, 13):
        write("append", f"day-{number}")
    clean_up(target)

    assert len(segments(target)) == 3
    assert len(stated(target, 14).ids) < 4
    assert [find(target, f"day-{number}") for number in (0, 4, 5, 6, 12)] == [1, 5, None, 8, 14]


@pytest.mark.parametrize("damage", ["removed", "truncated", "of another table"])
def test_what_a_lost_segment_had_is_unknown(
    target: ResolvedTable, write: Write, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr("airflow_provider_lancens.spark.keys.key_attempts.LONG", 4)
    for number in range(7):
        write("append", f"day-{number}")
    lance.dataset(target.dataset.location).optimize.compact_files()
    write("append", "last")
    clean_up(target)
    segment = segments(target)[-1]
    damaged = {"truncated": segment.read_text()[:20], "of another table": json.dumps({"version": 1})}
    segment.unlink() if damage == "removed" else segment.write_text(damaged[damage])

    with pytest.raises(InvalidTableStateError, match=r"cannot determine whether .*'day-1'.*confirm_write"):
        find(target, "day-1")
    assert find(target, "last") == target.latest_version()
    assert find(target, "new") is None


def test_a_rerun_reads_the_newest_transaction_and_its_record(
    target: ResolvedTable, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        write("append", f"day-{number}")
    read = versions_read(monkeypatch)

    assert find(target, "day-1") == 2
    assert read == [12]


def test_what_another_client_has_stated_is_ignored(target: ResolvedTable, write: Write) -> None:
    write("append", "january")
    for text in ("[", "1", "{}", '{"version": 9, "since": 1, "ids": ""}', '{"version": "x", "since": 1}'):
        latest = target.latest_version() or 0
        transaction = lance.Transaction(
            latest, lance.LanceOperation.UpdateConfig(), transaction_properties={LINEAGE: text}
        )
        lance.LanceDataset.commit(target.dataset.location, transaction, read_version=latest)

    assert find(target, "january") == 1
    assert stated(target, write("append", "february").commit.version).since == 1


@pytest.mark.parametrize(
    ("restores", "version", "kept"),
    [
        ((), 3, True),
        (((5, 2),), 3, False),
        (((5, 2),), 2, True),
        (((5, 2), (7, 4)), 3, True),
        (((5, 4), (7, 2)), 3, False),
    ],
)
def test_a_restore_undoes_what_is_between_it_and_what_it_restored(
    restores: commit_lineage.Restores, version: int, kept: bool
) -> None:
    assert Lineage(9, 1, restores=restores).keeps(version) is kept


def test_a_restore_that_may_have_been_missed_leaves_it_open() -> None:
    partial = Lineage(9, 5, restores=((8, 6),))

    assert [partial.keeps(version) for version in (2, 3, 4, 5, 7)] == [None, None, True, True, False]


def test_ids_of_transactions_tell_them_apart() -> None:
    assert transaction_id("a") != transaction_id("b")
    assert transaction_id("") == ""
