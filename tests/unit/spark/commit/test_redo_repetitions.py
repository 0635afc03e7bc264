"""A write repeated on purpose: in place of the earlier one, or in addition; once for all its tries."""

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.redo import redo_change
from airflow_provider_lancens.spark.keys import Counts, KeyLookup, look_up
from airflow_provider_lancens.spark.options import WriteIdentity
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.support.prepared_tables import prepare


def begin(
    target: ResolvedTable, policy: str, execution_id: str | None = None, key: str = "january"
) -> KeyLookup:
    return look_up(target, WriteIdentity(key, None, policy, execution_id))  # type: ignore[arg-type]


def finish(lookup: KeyLookup, number: int) -> CommitOutcome:
    """Write a row, and commit it."""
    if lookup.earlier is not None:
        return CommitOutcome(lookup.earlier, "found")
    target, rows = lookup.target, pa.table({"n": pa.array([number], pa.int64())})
    change = prepare(target, "append", rows)
    if lookup.replaced:
        assert lookup.latest is not None
        kind = redo_change("append", lookup.latest, lookup.replaced, str(target.id))
        change = kind(str(target.id), lookup.version, rows.schema, change.fragments)
    committer = Committer(target, lookup.write, Counts(1, 1, 1))
    return committer.commit(change, looked_up_to=lookup.version)


def rows(target: ResolvedTable) -> list[int]:
    return sorted(lance.dataset(target.dataset.location).to_table()["n"].to_pylist())


@pytest.mark.parametrize(
    ("policy", "left"),
    [("skip", [1]), ("redo", [2]), ("write_again", [1, 2])],
)
def test_a_rerun_follows_the_policy_for_existing_keys(
    target: ResolvedTable, policy: str, left: list[int]
) -> None:
    finish(begin(target, policy), 1)

    outcome = finish(begin(target, policy), 2)

    assert rows(target) == left
    assert outcome.made_here == (2 in left)
    newest = begin(target, "skip").earlier
    assert newest is not None
    assert newest.version == outcome.commit.version


@pytest.mark.parametrize("key", ["once-a-month", "once-2026"])
def test_a_key_with_the_prefix_of_a_generated_one_is_found(target: ResolvedTable, key: str) -> None:
    finish(begin(target, "skip", key=key), 1)

    assert not finish(begin(target, "skip", key=key), 2).made_here
    assert rows(target) == [1]


@pytest.mark.parametrize(("policy", "left"), [("redo", [2]), ("write_again", [1, 2])])
def test_retries_of_one_execution_commit_once(target: ResolvedTable, policy: str, left: list[int]) -> None:
    finish(begin(target, "skip"), 1)
    finish(begin(target, policy, "cleared once"), 2)

    assert not finish(begin(target, policy, "cleared once"), 3).made_here
    assert rows(target) == left
    assert finish(begin(target, policy, "cleared twice"), 4).made_here


@pytest.mark.parametrize("policy", ["redo", "write_again"])
def test_two_drivers_of_one_execution_commit_once(target: ResolvedTable, policy: str) -> None:
    finish(begin(target, "skip"), 1)
    slow, fast = begin(target, policy, "cleared"), begin(target, policy, "cleared")

    assert finish(fast, 2).made_here
    assert not finish(slow, 2).made_here
    assert rows(target) == ([2] if policy == "redo" else [1, 2])


def test_two_concurrent_executions_are_both_written(target: ResolvedTable) -> None:
    finish(begin(target, "skip"), 1)
    first, second = begin(target, "write_again", "a"), begin(target, "write_again", "b")

    assert finish(first, 2).made_here
    assert finish(second, 3).made_here
    assert rows(target) == [1, 2, 3]


def test_the_second_of_two_concurrent_replacements_is_refused(target: ResolvedTable) -> None:
    finish(begin(target, "skip"), 1)
    first, second = begin(target, "redo", "a"), begin(target, "redo", "b")
    finish(first, 2)

    with pytest.raises(ConcurrentModificationError, match="run it again"):
        finish(second, 3)
    assert rows(target) == [2]
