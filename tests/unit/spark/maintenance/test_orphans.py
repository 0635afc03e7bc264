"""The files that a clean-up of failed writes removes, and those that it must keep."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError

from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.support.leftovers import Leave
from tests.unit.spark.maintenance.ages import DAY, age, age_all, files


def test_only_unreferenced_files_are_removed(
    namespace: LanceNamespace, table: lance.LanceDataset, folder: Path, leave: Leave
) -> None:
    before = files(folder)
    orphans = {leave(), leave()}
    age_all(folder)

    answer = remove_orphans(namespace, "orders", older_than=DAY)

    assert (answer.table, set(answer.paths), answer.outcome) == ("orders", orphans, "done")
    assert answer.bytes > 0
    assert files(folder) == before
    counts = [table.checkout_version(version).count_rows() for version in range(1, 5)]
    assert counts == [2, 4, 2, 2]
    assert remove_orphans(namespace, "orders", older_than=DAY).paths == ()


def test_a_dry_run_removes_nothing(
    namespace: LanceNamespace, table: lance.LanceDataset, folder: Path, leave: Leave
) -> None:
    orphan = leave()
    age_all(folder)
    before = files(folder)

    answer = remove_orphans(namespace, "orders", older_than=DAY, dry_run=True)

    assert (answer.paths, answer.outcome) == ((orphan,), "planned")
    assert files(folder) == before


@pytest.mark.parametrize("linked", ["a file", "the folder"])
def test_links_and_their_targets_are_kept(
    namespace: LanceNamespace, table: lance.LanceDataset, folder: Path, tmp_path: Path, linked: str
) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "theirs.lance").write_bytes(b"theirs")
    link = folder / ("data/link.lance" if linked == "a file" else "_deletions")
    if linked == "the folder":
        (others / "theirs.arrow").write_bytes(b"theirs")
        link.rename(tmp_path / "moved")
        for file in (tmp_path / "moved").iterdir():
            file.rename(others / file.name)
    link.symlink_to(others / "theirs.lance" if linked == "a file" else others)
    age_all(folder)
    age_all(others)
    before = files(others)

    with pytest.raises(InvalidInputError, match="is a symbolic link below a table's location"):
        remove_orphans(namespace, "orders", older_than=DAY)
    assert files(others) == before
    assert link.is_symlink()


def test_younger_files_are_kept(
    namespace: LanceNamespace, table: lance.LanceDataset, folder: Path, leave: Leave
) -> None:
    young, old = leave(), leave()
    age(folder / old, by=2 * DAY)
    age(folder / young, by=DAY / 2)

    assert remove_orphans(namespace, "orders", older_than=DAY).paths == (old,)
    assert (folder / young).exists()


def test_files_of_a_failed_first_write_are_removed(
    namespace: LanceNamespace, target: ResolvedTable, folder: Path, leave: Leave
) -> None:
    with acquire_lease(target.dataset).kept_alive(end=True):
        orphan = leave()
    age_all(folder)

    assert remove_orphans(namespace, "orders", older_than=DAY).paths == (orphan,)


def test_deletion_files_of_a_failed_delete_are_removed(
    namespace: LanceNamespace, table: lance.LanceDataset, folder: Path
) -> None:
    left = table.get_fragments()[0].delete("n = 1")
    assert left is not None
    age_all(folder)

    answer = remove_orphans(namespace, "orders", older_than=DAY)

    assert answer.paths == (left.deletion_file.path(left.id),)
    assert table.checkout_version(3).count_rows() == 2


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda dataset: dataset.create_branch("b"), "branches"),
        (
            lambda dataset: lance.LanceDataset.commit(
                dataset, lance.LanceOperation.Delete([], [], "n = 9"), dataset.version, detached=True
            ),
            "detached",
        ),
    ],
    ids=["branch", "detached"],
)
def test_nothing_is_removed_if_references_are_unknown(
    namespace: LanceNamespace,
    table: lance.LanceDataset,
    folder: Path,
    leave: Leave,
    do: Callable[[Any], object],
    message: str,
) -> None:
    do(table)
    orphan = leave()
    age_all(folder)

    with pytest.raises(UnsupportedOperationError, match=message):
        remove_orphans(namespace, "orders", older_than=DAY)
    assert (folder / orphan).exists()


def test_a_too_short_minimum_age_is_refused(namespace: LanceNamespace) -> None:
    with pytest.raises(InvalidInputError, match="at least 0:10:00"):
        remove_orphans(namespace, "orders", older_than=timedelta(minutes=1))
