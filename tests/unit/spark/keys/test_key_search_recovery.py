from datetime import timedelta

import lance
import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.spark.keys import key_search
from airflow_provider_lancens.spark.keys.key_records import KeyIndex
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.keys.keyed import Attempt, files_of, find, touch


def write_without_records(target: ResolvedTable, *keys: str) -> None:
    """Make commits whose keys are only in their transactions, as a copy of the dataset alone has them."""
    for key in keys:
        Attempt(target, key).commit()


def clean_up(target: ResolvedTable) -> None:
    lance.dataset(target.dataset.location).cleanup_old_versions(
        older_than=timedelta(0), error_if_tagged_old_versions=False
    )


def test_keys_without_records_are_found_and_kept(target: ResolvedTable) -> None:
    write_without_records(target, "january", "february")
    assert not KeyIndex.of(files_of(target)).is_complete

    assert [find(target, key) for key in ("january", "february", "march")] == [1, 2, None]

    assert KeyIndex.of(files_of(target)).is_complete
    touch(target)
    clean_up(target)
    assert [find(target, key) for key in ("january", "february", "march")] == [1, 2, None]


def test_a_restore_is_recognized_without_records(target: ResolvedTable) -> None:
    write_without_records(target, "january", "february")
    target.open(1).restore()

    assert find(target, "february") is None
    touch(target)
    clean_up(target)
    assert find(target, "january") == 1  # its file shows it
    with pytest.raises(InvalidTableStateError, match="cannot determine"):
        find(target, "february")


def test_an_interrupted_recovery_is_repeated(target: ResolvedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    write_without_records(target, "january", "february")
    with monkeypatch.context() as patch:
        patch.setattr(key_search, "mark_complete", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            find(target, "january")

    assert [find(target, key) for key in ("january", "february", "march")] == [1, 2, None]
