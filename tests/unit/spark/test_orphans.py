"""What a clean-up of failed writes removes, and what it must not touch: times are set, nobody waits."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance.fragment import write_fragments
from lance_namespace import DeclareTableRequest, LanceNamespace, connect
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError, UnsupportedOperationError

from airflow_provider_lancens.spark import remove_orphans
from airflow_provider_lancens.spark import running as marks
from airflow_provider_lancens.spark.commit import Committer
from airflow_provider_lancens.spark.history import Counts
from airflow_provider_lancens.spark.running import MARKS, running
from airflow_provider_lancens.spark.target import Target, described
from tests.unit.spark.conftest import ROWS, prepare

DAY = timedelta(days=1)
Leave = Callable[[], str]


@pytest.fixture
def namespace(tmp_path: Path) -> LanceNamespace:
    made = connect("dir", {"root": str(tmp_path)})
    made.declare_table(DeclareTableRequest(id=["orders"]))
    return made


@pytest.fixture
def target(namespace: LanceNamespace) -> Iterator[Target]:
    with described(namespace, "orders") as found:
        yield found


@pytest.fixture
def folder(target: Target) -> Path:
    return Path(target.dataset.location)


@pytest.fixture
def table(target: Target) -> lance.LanceDataset:
    """Rows of three commits, of which one was deleted in part and one is only in older versions."""
    for key in ("january", "february"):
        Committer(target, key, Counts()).commit(prepare(target, "append"))
    lance.dataset(target.dataset.location).delete("n = 2")
    Committer(target, "march", Counts()).commit(prepare(target, "overwrite"))
    return lance.dataset(target.dataset.location)


@pytest.fixture
def leave(target: Target) -> Leave:
    """Write a file that no version refers to, as a task that fails does; its path."""

    def leave() -> str:
        [fragment] = write_fragments(ROWS, target.dataset.location, mode="append")
        return f"data/{fragment.files[0].path}"

    return leave


def age(*files: Path, by: timedelta = 30 * DAY) -> None:
    then = time.time() - by.total_seconds()
    for file in files:
        os.utime(file, (then, then))


def age_all(folder: Path) -> None:
    age(*(file for file in folder.rglob("*") if file.is_file()))


def files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_what_no_version_refers_to_goes_and_all_else_stays(
    namespace: LanceNamespace, table: lance.LanceDataset, folder: Path, leave: Leave
) -> None:
    before = files(folder)
    orphans = {leave(), leave()}
    age_all(folder)

    answer = remove_orphans(namespace, "orders", older_than=DAY)

    assert (answer.table, set(answer.paths), answer.removed) == ("orders", orphans, True)
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

    assert (answer.paths, answer.removed) == ((orphan,), False)
    assert files(folder) == before


def test_what_is_younger_stays(
    namespace: LanceNamespace, table: lance.LanceDataset, folder: Path, leave: Leave
) -> None:
    young, old = leave(), leave()
    age(folder / old, by=2 * DAY)
    age(folder / young, by=DAY / 2)

    assert remove_orphans(namespace, "orders", older_than=DAY).paths == (old,)
    assert (folder / young).exists()


def test_the_files_of_a_running_write_stay_however_old(
    namespace: LanceNamespace, table: lance.LanceDataset, target: Target, folder: Path, leave: Leave
) -> None:
    before = leave()
    age(folder / before)
    with running(target.dataset) as write:
        change = prepare(target, "append")
        [of_the_running_one] = [f"data/{file.path}" for file in change.fragments[0].files]
        began_long_ago(write.files.location, write.path, 20 * DAY)
        age(folder / of_the_running_one, by=19 * DAY)

        assert remove_orphans(namespace, "orders", older_than=DAY).paths == (before,)
        Committer(target, "april", Counts(), write=write).commit(change)

    assert lance.dataset(target.dataset.location).count_rows() == 4


def began_long_ago(location: str, path: str, by: timedelta) -> None:
    """As if it ran for days; its last sign of life is fresh."""
    Path(location, path).write_text((datetime.now(UTC) - by).isoformat())


def test_a_dead_write_protects_nothing_and_its_mark_goes(
    namespace: LanceNamespace, table: lance.LanceDataset, target: Target, folder: Path, leave: Leave
) -> None:
    with running(target.dataset) as dead:
        orphan = leave()
        age_all(folder)

        assert remove_orphans(namespace, "orders", older_than=DAY).paths == (orphan,)

        assert not (folder / dead.path).exists()


def test_who_was_taken_for_dead_commits_nothing(
    namespace: LanceNamespace, table: lance.LanceDataset, target: Target, folder: Path
) -> None:
    with running(target.dataset) as sleeper:
        change = prepare(target, "append")
        age_all(folder)
        remove_orphans(namespace, "orders", older_than=DAY)

        sleeper.refresh()  # a late sign of life doesn't bring it back
        with pytest.raises(ConcurrentModificationError, match="took this write for dead"):
            Committer(target, "april", Counts(), write=sleeper).commit(change)
    assert lance.dataset(target.dataset.location).version == 4


def test_the_rest_of_a_first_write_that_failed_goes(
    namespace: LanceNamespace, target: Target, folder: Path, leave: Leave
) -> None:
    with running(target.dataset):
        orphan = leave()
    age_all(folder)

    assert remove_orphans(namespace, "orders", older_than=DAY).paths == (orphan,)


def test_a_write_leaves_no_mark(target: Target, folder: Path) -> None:
    with running(target.dataset) as write:
        assert (folder / write.path).exists()

    assert not [file for file in files(folder) if file.startswith(MARKS)]


def test_a_running_write_gives_signs_of_life(
    target: Target, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "REFRESH", 0.01)
    with running(target.dataset) as write:
        age(folder / write.path)
        before = (folder / write.path).stat().st_mtime
        while (folder / write.path).stat().st_mtime == before:
            time.sleep(0.01)

        [mark] = marks.marks_of(write.files)
        assert mark.began == write.began


def test_deletion_files_of_a_failed_delete_go_too(
    namespace: LanceNamespace, table: lance.LanceDataset, folder: Path
) -> None:
    left = table.get_fragments()[0].delete("n = 1")
    assert left is not None
    age_all(folder)

    answer = remove_orphans(namespace, "orders", older_than=DAY)

    assert answer.paths == (left.deletion_file.path(left.id),)
    assert table.checkout_version(3).count_rows() == 2


@pytest.mark.parametrize(
    ("do", "words"),
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
def test_where_not_all_that_refers_can_be_told_nothing_goes(
    namespace: LanceNamespace,
    table: lance.LanceDataset,
    folder: Path,
    leave: Leave,
    do: Callable[[Any], object],
    words: str,
) -> None:
    do(table)
    orphan = leave()
    age_all(folder)

    with pytest.raises(UnsupportedOperationError, match=words):
        remove_orphans(namespace, "orders", older_than=DAY)
    assert (folder / orphan).exists()


def test_an_age_that_is_too_short_is_refused(namespace: LanceNamespace) -> None:
    with pytest.raises(InvalidInputError, match="at least 0:10:00"):
        remove_orphans(namespace, "orders", older_than=timedelta(minutes=1))
