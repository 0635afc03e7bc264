"""Clean-up with running writes, and with writes presumed dead."""

import time
from pathlib import Path

import lance
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens.namespace.storage.write_leases import LEASES, leases_of
from airflow_provider_lancens.spark.commit import lease_revocation
from airflow_provider_lancens.spark.commit import write_lease as marks
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.table.history import data_changed
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.support.leftovers import Leave
from tests.support.prepared_tables import prepare
from tests.unit.spark.maintenance.ages import DAY, age, age_all, began_long_ago, files


def test_files_of_a_running_write_are_kept_at_any_age(
    namespace: LanceNamespace, table: lance.LanceDataset, target: ResolvedTable, folder: Path, leave: Leave
) -> None:
    before = leave()
    age(folder / before)
    with acquire_lease(target.dataset).kept_alive(end=True) as write:
        change = prepare(target, "append")
        [of_the_running_one] = [f"data/{file.path}" for file in change.fragments[0].files]
        began_long_ago(write.files.location, write.path, 20 * DAY)
        write.refresh()
        age(folder / of_the_running_one, by=19 * DAY)

        assert remove_orphans(namespace, "orders", older_than=DAY).paths == (before,)
        Committer(target, KeyedWrite("april"), Counts(), lease=write).commit(change)

    assert lance.dataset(target.dataset.location).count_rows() == 4


def test_a_dead_write_protects_no_files_and_its_lease_is_removed(
    namespace: LanceNamespace, table: lance.LanceDataset, target: ResolvedTable, folder: Path, leave: Leave
) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as dead:
        orphan = leave()
        age_all(folder)

        assert remove_orphans(namespace, "orders", older_than=DAY).paths == (orphan,)

        assert not (folder / dead.path).exists()


def test_a_presumed_dead_write_commits_nothing(
    namespace: LanceNamespace, table: lance.LanceDataset, target: ResolvedTable, folder: Path
) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as sleeper:
        change = prepare(target, "append")
        age_all(folder)
        remove_orphans(namespace, "orders", older_than=DAY)

        sleeper.refresh()  # a late heartbeat doesn't restore it
        with pytest.raises(ConcurrentModificationError, match="presumed this write dead"):
            Committer(target, KeyedWrite("april"), Counts(), lease=sleeper).commit(change)
    assert lance.dataset(target.dataset.location).version == 5
    assert not data_changed(lance.dataset(target.dataset.location), since=4)


def test_a_late_heartbeat_does_not_restore_a_revoked_lease(
    namespace: LanceNamespace, table: lance.LanceDataset, target: ResolvedTable, folder: Path
) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as sleeper:
        age_all(folder)
        remove_orphans(namespace, "orders", older_than=DAY)

        sleeper.files.put(f"{sleeper.path}.alive", b"")  # it was suspended right before it wrote this

        with pytest.raises(ConcurrentModificationError, match="presumed this write dead"):
            sleeper.check()
        age_all(folder)
        remove_orphans(namespace, "orders", older_than=DAY)
        assert not [file for file in files(folder) if file.startswith(LEASES)]


def test_an_interrupted_lease_revocation_is_finished_by_the_next_clean_up(
    namespace: LanceNamespace,
    table: lance.LanceDataset,
    target: ResolvedTable,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(target: ResolvedTable) -> int:
        raise KeyboardInterrupt

    with acquire_lease(target.dataset).kept_alive(end=True):
        age_all(folder)
        with monkeypatch.context() as patch:
            patch.setattr(lease_revocation, "_commit_barrier", dies)
            with pytest.raises(KeyboardInterrupt):
                remove_orphans(namespace, "orders", older_than=DAY)
        assert lance.dataset(target.dataset.location).version == 4

        remove_orphans(namespace, "orders", older_than=DAY)
        assert lance.dataset(target.dataset.location).version == 5
        remove_orphans(namespace, "orders", older_than=DAY)
        assert lance.dataset(target.dataset.location).version == 5


def test_files_of_a_dead_first_write_are_kept(
    namespace: LanceNamespace, target: ResolvedTable, folder: Path, leave: Leave
) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as sleeper:
        change = prepare(target, "append")
        age_all(folder)

        answer = remove_orphans(namespace, "orders", older_than=DAY)

        assert (answer.paths, answer.unfenced) == ((), 1)
        assert Committer(target, KeyedWrite("january"), Counts(), lease=sleeper).commit(change).made_here
    assert lance.dataset(target.dataset.location).count_rows() == 2


def test_a_finished_write_leaves_no_lease(target: ResolvedTable, folder: Path) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True) as write:
        assert (folder / write.path).exists()

    assert not [file for file in files(folder) if file.startswith(LEASES)]


def test_a_running_write_renews_its_lease(
    target: ResolvedTable, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "REFRESH", 0.01)
    with acquire_lease(target.dataset).kept_alive(end=True) as write:
        write.refresh()
        sign = folder / f"{write.path}.alive"
        age(sign)
        before = sign.stat().st_mtime
        while sign.stat().st_mtime == before:
            time.sleep(0.01)

        [mark] = leases_of(write.files)
        assert (mark.path, mark.began) == (write.path, write.began())
        assert mark.refreshed > write.began()
