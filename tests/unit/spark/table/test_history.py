from collections.abc import Callable
from datetime import timedelta

import lance

from airflow_provider_lancens.spark.table.history import data_changed, read_transaction
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.table.row_difference import changed_rows


def location(target: ResolvedTable) -> str:
    return target.dataset.location


def test_maintenance_changes_no_data(target: ResolvedTable, write: Callable[..., object]) -> None:
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


def test_a_compaction_that_remaps_an_index_changes_no_data(
    target: ResolvedTable, write: Callable[..., object]
) -> None:
    for key in ("january", "february"):
        write("append", key)
    dataset = lance.dataset(location(target))
    dataset.create_scalar_index("n", "BTREE")
    dataset.optimize.compact_files()

    latest = target.open_latest()

    assert latest is not None
    assert not data_changed(latest, since=2)


def test_a_cleaned_up_version_counts_as_changed_data(
    target: ResolvedTable, write: Callable[..., object]
) -> None:
    for key in ("january", "february"):
        write("append", key)
    for _ in range(2):
        lance.dataset(location(target)).update_config({"touched": "yes"})
    lance.dataset(location(target)).cleanup_old_versions(older_than=timedelta(0))

    latest = target.open_latest()

    assert latest is not None
    assert data_changed(latest, since=2)
    assert not data_changed(latest, since=3)
    assert read_transaction(latest, 2) is None
    assert read_transaction(latest, 4) is not None


def test_rows_that_were_restored_and_others_deleted_differ_though_they_are_as_many(
    target: ResolvedTable, write: Callable[..., object]
) -> None:
    write("append", "january")
    dataset = lance.dataset(location(target))
    dataset.delete("n = 1")
    dataset.checkout_version(1).restore()
    lance.dataset(location(target)).delete("n = 2")

    latest = target.open_latest()

    assert latest is not None
    changed = changed_rows(latest, 2, ["n"])
    assert changed is not None
    assert changed.written["n"].to_pylist() == [1]
    assert changed.deleted["n"].to_pylist() == [2]
