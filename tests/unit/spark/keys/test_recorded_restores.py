"""A commit states that all Restores below it are recorded, so that a rerun stops reading there."""

from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from airflow_provider_lancens.spark.commit.committer import CommitOutcome
from airflow_provider_lancens.spark.keys.key_index import INDEX
from airflow_provider_lancens.spark.keys.restored_versions import RESTORES_RECORDED
from airflow_provider_lancens.spark.table import history
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.keys.keyed import find, touch, versions_read

Write = Callable[..., CommitOutcome]


def states_restores(target: ResolvedTable, version: int) -> bool:
    transaction = history.read_transaction(lance.dataset(target.dataset.location), version)
    assert transaction is not None
    return RESTORES_RECORDED in (transaction.transaction_properties or {})


@pytest.mark.parametrize(("of_others", "states"), [(0, True), (3, True), (20, False)])
def test_a_commit_states_it_after_few_commits_of_others(
    target: ResolvedTable, write: Write, of_others: int, states: bool
) -> None:
    write("append", "january")
    touch(target, of_others)

    assert states_restores(target, write("append", "february").commit.version) == states


@pytest.mark.parametrize("of_others", [0, 3, 20, 40])
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


@pytest.mark.parametrize("replaced_by", [None, "restores-99.json"])
def test_a_commit_is_not_trusted_without_the_checkpoint_that_it_relies_on(
    target: ResolvedTable, write: Write, replaced_by: str | None
) -> None:
    for key in ("january", "february"):
        write("append", key)
    target.open(1).restore()
    for key in ("march", "april"):
        write("append", key)
    [checkpoint] = (Path(target.dataset.location) / INDEX).glob("restores-*.json")
    # Removed by a driver that replaced it after it was listed, or left from a version that was abandoned.
    checkpoint.unlink() if replaced_by is None else checkpoint.rename(checkpoint.with_name(replaced_by))

    assert find(target, "january") == 1
    assert find(target, "february") is None


def test_a_rerun_reads_its_own_transaction_and_the_newest(
    target: ResolvedTable, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        write("append", f"day-{number}")
    read = versions_read(monkeypatch)

    assert find(target, "day-1") == 2
    assert sorted(read) == [2, 12]
