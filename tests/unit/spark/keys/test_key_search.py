from datetime import timedelta
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.spark.keys.key_records import CONFIRMED, INDEX, KeyIndex, remove_leftovers
from airflow_provider_lancens.spark.table import history
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.keys.keyed import ROWS, Attempt, commit, files_of, find, touch, versions_read


def clean_up_by_lance(target: ResolvedTable) -> None:
    """Remove all versions but the newest, as a client does that has no key records."""
    lance.dataset(target.dataset.location).cleanup_old_versions(
        older_than=timedelta(0), error_if_tagged_old_versions=False
    )


def test_a_key_is_found_by_its_record(target: ResolvedTable) -> None:
    for key in ("january", "february", "march"):
        commit(target, key)

    assert [find(target, key) for key in ("january", "february", "march", "april")] == [1, 2, 3, None]


def test_a_key_that_was_never_committed_reads_no_history(
    target: ResolvedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(target, "january")
    assert find(target, "february") is None  # from here on the index is complete

    def read(*_: object, **__: object) -> None:
        raise AssertionError("a transaction was read")

    monkeypatch.setattr(history, "transactions", read)
    assert find(target, "february") is None


def test_a_driver_killed_before_its_commit_has_committed_nothing(target: ResolvedTable) -> None:
    commit(target, "january")
    Attempt(target, "february").announce()

    assert find(target, "february") is None

    commit(target, "march")
    assert find(target, "february") is None


def test_the_commit_of_a_driver_killed_after_it_is_found_and_confirmed(target: ResolvedTable) -> None:
    commit(target, "january")
    assert find(target, "other") is None
    attempt = Attempt(target, "february").announce().commit()
    touch(target)

    assert find(target, "february") == 2

    clean_up_by_lance(target)
    assert find(target, "february") == 2
    assert attempt.record is not None
    assert files_of(target).stat(attempt.record.path + CONFIRMED) is not None


def test_a_confirmed_key_outlives_its_version(target: ResolvedTable) -> None:
    for key in ("january", "february", "march"):
        commit(target, key)
    assert find(target, "april") is None
    clean_up_by_lance(target)

    assert [find(target, key) for key in ("january", "february", "march", "april")] == [1, 2, 3, None]


def test_an_unverifiable_commit_is_refused(target: ResolvedTable) -> None:
    commit(target, "january")
    assert find(target, "other") is None
    Attempt(target, "february").announce().commit()
    lance.write_dataset(ROWS, target.dataset.location, mode="overwrite")
    touch(target)
    clean_up_by_lance(target)

    with pytest.raises(InvalidTableStateError, match=r"tried to commit version 2, which.*confirm_write"):
        find(target, "february")


def test_a_later_commit_shows_what_was_committed_before_it(target: ResolvedTable) -> None:
    commit(target, "january")
    assert find(target, "other") is None
    Attempt(target, "february").announce().commit()
    Attempt(target, "march").announce()
    commit(target, "april")
    lance.dataset(target.dataset.location).optimize.compact_files()
    commit(target, "may")
    clean_up_by_lance(target)

    assert [find(target, key) for key in ("january", "february", "march", "april")] == [1, 2, None, 3]


def test_the_newest_of_two_commits_under_a_key_counts(target: ResolvedTable) -> None:
    for key in ("january", "february", "january"):
        commit(target, key)

    assert find(target, "january") == 3


@pytest.mark.parametrize("behind", [0, 40])
def test_a_commit_undone_by_a_restore_counts_as_never_committed(target: ResolvedTable, behind: int) -> None:
    for key in ("january", "february"):
        commit(target, key)
    target.open(1).restore()
    touch(target, behind)

    assert find(target, "february") is None
    assert find(target, "january") == 1
    assert find(target, "january") == 1


@pytest.mark.parametrize("behind", [0, 40])
def test_a_commit_redone_by_a_restore_is_found_again(target: ResolvedTable, behind: int) -> None:
    for key in ("january", "february"):
        commit(target, key)
    target.open(1).restore()
    touch(target, behind)
    assert find(target, "february") is None
    target.open(2).restore()

    assert find(target, "february") == 2


def test_a_restore_is_recognized_after_its_version_was_cleaned_up(target: ResolvedTable) -> None:
    for key in ("january", "february"):
        commit(target, key)
    target.open(1).restore()
    touch(target, 40)
    assert find(target, "january") == 1  # moves the checkpoint past the Restore
    clean_up_by_lance(target)

    assert find(target, "february") is None
    assert find(target, "january") == 1


def test_restores_since_a_found_key_are_read_only_once(
    target: ResolvedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(target, "january")
    touch(target, 70)
    assert find(target, "january") == 1
    read = versions_read(monkeypatch)
    touch(target, 2)

    assert find(target, "january") == 1
    assert sorted(read) == [71, 72, 73]


def test_keys_of_a_manually_removed_data_set_do_not_apply_to_the_next_one(target: ResolvedTable) -> None:
    for key in ("january", "february", "march"):
        commit(target, key)
    assert find(target, "march") == 3
    remove_all_but_keys(Path(target.dataset.location))

    remove_leftovers(files_of(target), lambda: target.latest_version() is not None)
    commit(target, "april")
    touch(target, 3)
    clean_up_by_lance(target)

    assert [find(target, key) for key in ("january", "february", "march", "april")] == [None, None, None, 1]


def test_a_driver_about_to_create_the_data_set_keeps_its_record(target: ResolvedTable) -> None:
    first = Attempt(target, "january").announce()

    remove_leftovers(files_of(target), lambda: target.latest_version() is not None)
    first.commit()

    assert find(target, "january") == 1


def test_keys_are_kept_if_another_driver_has_created_the_data_set(target: ResolvedTable) -> None:
    commit(target, "january")

    remove_leftovers(files_of(target), lambda: True)

    assert find(target, "january") == 1
    assert KeyIndex.of(files_of(target)).is_complete


def remove_all_but_keys(folder: Path) -> None:
    for file in sorted(folder.rglob("*"), reverse=True):
        if "_lancens" not in file.parts:
            file.unlink() if file.is_file() else file.rmdir()
    assert Path(folder, INDEX).exists()
