import json
from dataclasses import replace
from datetime import timedelta

import lance
import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.spark.keys import key_migration, look_up
from airflow_provider_lancens.spark.keys.key_index import KeyIndex
from airflow_provider_lancens.spark.keys.key_records import digest
from airflow_provider_lancens.spark.options import WriteRequest
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.keys.keyed import Attempt, files_of, find, touch


def write_without_records(target: ResolvedTable, *keys: str) -> None:
    """Make commits whose keys are only in their transactions, as earlier versions of the package did."""
    for key in keys:
        Attempt(target, key).commit()


def clean_up(target: ResolvedTable) -> None:
    lance.dataset(target.dataset.location).cleanup_old_versions(
        older_than=timedelta(0), error_if_tagged_old_versions=False
    )


def test_keys_of_an_older_table_are_found_and_kept(target: ResolvedTable) -> None:
    write_without_records(target, "january", "february")
    assert not KeyIndex.of(files_of(target)).is_complete

    assert [find(target, key) for key in ("january", "february", "march")] == [1, 2, None]

    assert KeyIndex.of(files_of(target)).is_complete
    touch(target)
    clean_up(target)
    assert [find(target, key) for key in ("january", "february", "march")] == [1, 2, None]


def test_a_restore_by_an_older_version_is_recognized(target: ResolvedTable) -> None:
    write_without_records(target, "january", "february")
    target.open(1).restore()

    assert find(target, "february") is None
    touch(target)
    clean_up(target)
    assert find(target, "january") == 1  # its file shows it
    with pytest.raises(InvalidTableStateError, match="cannot determine"):
        find(target, "february")


def test_the_catalog_tables_old_write_log_is_migrated(target: ResolvedTable) -> None:
    write_without_records(target, "january", "february", "march")
    clean_up(target)
    log = [[digest("january"), 1, "", 2, 1, 100], [digest("later"), 9, "", 2, 1, 100]]

    logged = replace(target, write_log=json.dumps(log))

    # One above the newest version belongs to a dataset that no longer exists.
    assert [find(logged, key) for key in ("january", "february", "march", "later")] == [1, None, 3, None]


def test_a_write_log_that_cannot_be_parsed_is_named(target: ResolvedTable) -> None:
    write_without_records(target, "january")

    with pytest.raises(InvalidTableStateError, match=r"lancens\.writes"):
        find(replace(target, write_log="invalid"), "january")


def test_a_write_that_is_made_regardless_needs_no_write_log(target: ResolvedTable) -> None:
    write_without_records(target, "january")
    request = WriteRequest("append", "january", on_existing_key="write_again")

    assert look_up(replace(target, write_log="invalid"), request).earlier is None


def test_an_interrupted_migration_is_repeated(target: ResolvedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    write_without_records(target, "january", "february")
    with monkeypatch.context() as patch:
        patch.setattr(key_migration, "mark_complete", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            find(target, "january")

    assert [find(target, key) for key in ("january", "february", "march")] == [1, 2, None]
