from collections.abc import Callable
from datetime import timedelta

import lance

from airflow_provider_lancens.spark.history import Commit, Counts, data_changed, find_commit
from airflow_provider_lancens.spark.target import Target


def find(target: Target, key: str) -> Commit | None:
    return find_commit(target.open_latest(), key)


def location(target: Target) -> str:
    return target.dataset.location


def test_a_commit_is_found_by_its_key_with_what_it_brought(
    target: Target, write: Callable[..., object]
) -> None:
    for key in ("january", "february", "march"):
        write("append", key)

    found = find(target, "february")

    assert found is not None
    assert (found.version, found.previous_version) == (2, 1)
    assert found.counts == Counts(rows=2, files=1, bytes=100)
    assert find(target, "april") is None


def test_the_first_commit_follows_no_version(target: Target, write: Callable[..., object]) -> None:
    write("append", "january")

    assert getattr(find(target, "january"), "previous_version", "nothing found") is None


def test_a_commit_is_found_behind_a_long_history(target: Target, write: Callable[..., object]) -> None:
    write("append", "january")
    for _ in range(40):
        lance.dataset(location(target)).update_config({"touched": "yes"})

    assert getattr(find(target, "january"), "version", None) == 1


def test_only_versions_that_are_new_are_looked_at(target: Target, write: Callable[..., object]) -> None:
    for key in ("january", "february"):
        write("append", key)
    latest = target.open(2)

    assert find_commit(latest, "january", after=1) is None
    assert find_commit(latest, "february", after=1) is not None


def test_what_a_restore_took_back_counts_as_never_committed(
    target: Target, write: Callable[..., object]
) -> None:
    for key in ("january", "february"):
        write("append", key)
    target.open(1).restore()

    assert find(target, "february") is None
    assert find(target, "january") is not None


def test_what_a_restore_brought_back_is_found_again(target: Target, write: Callable[..., object]) -> None:
    for key in ("january", "february"):
        write("append", key)
    target.open(1).restore()
    target.open(2).restore()

    latest = target.open_latest()

    assert latest is not None
    assert getattr(find_commit(latest, "february", after=3), "version", None) == 2


def test_versions_that_were_cleaned_up_are_passed_over(target: Target, write: Callable[..., object]) -> None:
    for key in ("january", "february", "march", "april"):
        write("append", key)
    dataset = lance.dataset(location(target))
    dataset.tags.create("kept", 2)
    dataset.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    assert find(target, "january") is None
    assert getattr(find(target, "february"), "version", None) == 2
    assert getattr(find(target, "april"), "version", None) == 4


def test_maintenance_changes_no_data(target: Target, write: Callable[..., object]) -> None:
    for key in ("january", "february"):
        write("append", key)
    dataset = lance.dataset(location(target))
    dataset.optimize.compact_files()
    dataset.create_scalar_index("n", "BTREE")
    dataset.update_config({"touched": "yes"})

    latest = target.open_latest()

    assert latest is not None
    assert latest.version > 4
    assert not data_changed(latest, since=2)
    assert data_changed(latest, since=1)


def test_a_compaction_that_carried_an_index_along_is_no_change_of_data(
    target: Target, write: Callable[..., object]
) -> None:
    for key in ("january", "february"):
        write("append", key)
    dataset = lance.dataset(location(target))
    dataset.create_scalar_index("n", "BTREE")
    dataset.optimize.compact_files()

    latest = target.open_latest()

    assert latest is not None
    assert not data_changed(latest, since=2)
    assert getattr(find(target, "january"), "version", None) == 1
