"""Clean-up of old versions, with long-running writes and writes presumed dead."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import (
    ConcurrentModificationError,
    TableVersionNotFoundError,
    UnsupportedOperationError,
)

from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.namespace.storage.object_store import VERSIONS, manifest_names
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.maintenance import clean_up
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.table_state import table_state
from airflow_provider_lancens.spark.table.history import data_changed
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable, resolved_table
from tests.support.prepared_tables import ROWS, prepare
from tests.unit.spark.every_verb import TABLE, Lake, rows

NOW = timedelta(0)


@pytest.fixture
def target(namespace: LanceNamespace) -> Iterator[ResolvedTable]:
    """A table of three versions."""
    with resolved_table(namespace, "orders") as found:
        for key in ("january", "february", "march"):
            Committer(found, KeyedWrite(key), Counts()).commit(prepare(found, "overwrite"))
        yield found


def age(target: ResolvedTable, *, days: int, but: tuple[str, ...] = ()) -> None:
    folder, then = Path(target.dataset.location), time.time() - timedelta(days=days).total_seconds()
    for file in folder.rglob("*"):
        if file.is_file() and file.name not in but:
            os.utime(file, (then, then))


def set_committed(target: ResolvedTable, *, version: int, days_ago: int) -> None:
    then = time.time() - timedelta(days=days_ago).total_seconds()
    for name in manifest_names(version):
        if (file := Path(target.dataset.location, VERSIONS, name)).exists():
            os.utime(file, (then, then))


def versions(target: ResolvedTable) -> list[int]:
    return sorted(ref["version"] for ref in lance.dataset(target.dataset.location).version_refs())


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_age_of_a_version_counts_from_the_commit_that_replaced_it(
    namespace: LanceNamespace, target: ResolvedTable, dry_run: bool
) -> None:
    age(target, days=30)
    set_committed(target, version=3, days_ago=-1)  # version 2 was not replaced yet
    set_committed(target, version=2, days_ago=1)

    result = clean_up_versions(namespace, "orders", older_than=NOW, dry_run=dry_run)

    assert result.versions == 1
    assert versions(target) == ([1, 2, 3] if dry_run else [2, 3])


@pytest.mark.parametrize(("replaced", "removable", "delay"), [(13, 1, 6), (15, 2, 6), (0, 1, 6)])
def test_a_clean_up_is_due_by_when_versions_were_replaced(
    namespace: LanceNamespace, target: ResolvedTable, replaced: int, removable: int, delay: int
) -> None:
    for version, days_ago in ((1, 90), (2, 20), (3, replaced)):
        set_committed(target, version=version, days_ago=days_ago)

    with table_state(namespace, "orders") as state:
        found = state.old_versions(timedelta(days=14), 1)

    assert (found.removable, found.delay.days) == (removable, delay)


def test_a_write_that_runs_for_a_week_keeps_its_files(
    namespace: LanceNamespace, target: ResolvedTable
) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as write:
        change = prepare(target, "append")
        write.refresh()
        age(target, days=8, but=(f"{Path(write.path).name}.alive",))

        with pytest.raises(ConcurrentModificationError, match="a write has been running since"):
            clean_up_versions(namespace, "orders", older_than=NOW)

        assert versions(target) == [1, 2, 3]
        Committer(target, KeyedWrite("april"), Counts(), lease=write).commit(change)
    assert lance.dataset(target.dataset.location).count_rows() == 4
    assert clean_up_versions(namespace, "orders", older_than=NOW).versions == 3


def test_a_younger_write_is_kept(namespace: LanceNamespace, target: ResolvedTable) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as write:
        change = prepare(target, "append")
        age(target, days=5)

        assert clean_up_versions(namespace, "orders", older_than=NOW).versions == 2

        Committer(target, KeyedWrite("april"), Counts(), lease=write).commit(change)
    assert lance.dataset(target.dataset.location).count_rows() == 4


def test_revoking_a_dead_writes_lease_keeps_the_previous_version_for_its_readers(
    namespace: LanceNamespace, target: ResolvedTable
) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as write:
        change = prepare(target, "append")
        age(target, days=8)

        result = clean_up_versions(namespace, "orders", older_than=NOW)

        assert (result.version, result.versions, versions(target)) == (4, 2, [3, 4])
        assert not data_changed(lance.dataset(target.dataset.location), since=3)
        with pytest.raises(ConcurrentModificationError, match="presumed this write dead"):
            Committer(target, KeyedWrite("april"), Counts(), lease=write).commit(change)
    assert lance.dataset(target.dataset.location).count_rows() == 2


def test_a_dry_run_revokes_no_lease(namespace: LanceNamespace, target: ResolvedTable) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as write:
        age(target, days=8)

        clean_up_versions(namespace, "orders", older_than=NOW, dry_run=True)

        write.check()
        assert versions(target) == [1, 2, 3]


def test_a_link_that_is_put_into_the_table_meanwhile_is_not_followed(
    namespace: LanceNamespace, target: ResolvedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, elsewhere, plan = (
        Path(target.dataset.location, "data"),
        tmp_path / "elsewhere",
        clean_up._explained,
    )
    shutil.copytree(data, elsewhere)
    before = {path.name: path.read_bytes() for path in elsewhere.iterdir()}

    def plan_and_link(*arguments: Any) -> Any:
        found = plan(*arguments)
        data.rename(data.with_name("moved"))
        data.symlink_to(elsewhere)
        return found

    monkeypatch.setattr(clean_up, "_explained", plan_and_link)
    assert clean_up_versions(namespace, "orders", older_than=NOW).versions == 2
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == before


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("folder", ["data", "_indices"])
def test_a_dataset_in_a_folder_of_the_table_is_not_removed_on_an_object_store(
    namespace: LanceNamespace,
    target: ResolvedTable,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    dry_run: bool,
) -> None:
    inner = lance.write_dataset(ROWS, f"{target.dataset.location}/{folder}/inner.lance")
    age(target, days=30)
    monkeypatch.setattr(purge, "first_foreign_path", lambda location: None)  # only local folders are searched

    with pytest.raises(UnsupportedOperationError, match="another dataset inside the table's own"):
        clean_up_versions(namespace, "orders", older_than=NOW, dry_run=dry_run)

    assert lance.dataset(inner.uri).to_table() == ROWS
    assert len(versions(target)) == 3


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_a_table_is_cleaned_up_after_the_version_without_rows_at_which_a_branch_begins_was_removed(
    tmp_path: Path, managed_by: str, dry_run: bool
) -> None:
    lake = Lake(str(tmp_path), managed_by)
    lake.namespace.declare_table(TABLE)
    orders = lake.table()
    orders.append(rows())
    lake.namespace.create_table_branch({**TABLE, "name": "trial"})
    orders.append(rows(1))
    assert orders.expire_versions(older_than=NOW).versions == 1
    orders.append(rows(2))

    cleaned = orders.expire_versions(older_than=NOW, dry_run=dry_run)

    assert (cleaned.versions, cleaned.outcome) == (1, "planned" if dry_run else "done")
    assert lance.dataset(lake.location).checkout_version(("trial", None)).count_rows() == 0
    with pytest.raises(TableVersionNotFoundError):
        orders.at(1)
