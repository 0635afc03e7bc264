"""Staging and publishing that end at any step, are repeated, or run beside each other and beside readers."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import lance
import pytest
from lance.dataset import Tags

from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark import WriteResult
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.single_version_commit import SingleVersionCommit
from airflow_provider_lancens.spark.keys import KeyAttempts
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from airflow_provider_lancens.spark.publish import discard_version, publish_version
from tests.support.maintained_tables import Maintained, on, rows
from tests.support.results import number_of
from tests.support.writes import write_table

pytestmark = pytest.mark.thorough

Steps = dict[str, tuple[Any, str, bool]]
"""By name: a class, a method of it, and whether to die after the call rather than before."""
STAGING: Steps = {
    "before the tag": (Tags, "create", False),
    "after the tag": (Tags, "create", True),
    "after the commit": (lance.LanceDataset, "commit", True),
}
PUBLISHING: Steps = {
    "before the announcement": (KeyAttempts, "announce", False),
    "after the announcement": (KeyAttempts, "announce", True),
    "after the commit": (SingleVersionCommit, "commit", True),
    "after the conclusion": (KeyAttempts, "conclude", True),
    "before the tag is removed": (TableFiles, "remove", False),
}


class _Died(BaseException):
    """The end of a process, which no `except Exception` notices."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call a function that dies at a step."""

    def call(step: tuple[Any, str, bool], function: Callable[[], object]) -> None:
        owner, name, after = step
        genuine = getattr(owner, name)

        def deadly(*arguments: Any, **options: Any) -> Any:
            if after:
                genuine(*arguments, **options)
            raise _Died

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, deadly)
            with pytest.raises(_Died):
                function()

    return call


def stage(table: Maintained, first: int, end: int, key: str) -> WriteResult:
    frame = rows(table.spark, first, end)
    return write_table(frame, table.spec, table.id, key=key, stage=True)


@on("hive")
@pytest.mark.parametrize("step", STAGING)
def test_a_write_that_died_while_it_staged_is_staged_again(table: Maintained, dying: Any, step: str) -> None:
    table.write(rows(table.spark, 0, 3))

    dying(STAGING[step], lambda: stage(table, 3, 5, "day"))
    assert table.ids() == [0, 1, 2]
    published = publish_version(table.spec, table.id, number_of(stage(table, 3, 5, "day")))

    assert table.ids() == [0, 1, 2, 3, 4]
    assert published.written == 2


@on("hive")
@pytest.mark.parametrize("step", PUBLISHING)
def test_a_task_that_died_while_it_published_publishes_once(table: Maintained, dying: Any, step: str) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5, "day")

    dying(PUBLISHING[step], lambda: publish_version(table.spec, table.id, number_of(staged)))
    table.write(rows(table.spark, 5, 6))
    publish_version(table.spec, table.id, number_of(staged))

    assert table.ids() == [0, 1, 2, 3, 4, 5]
    assert not table.newest.tags.list()


@on("hive")
def test_the_files_of_a_publication_that_was_undone_stay_when_it_is_discarded(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = stage(table, 3, 5, "day")
    published = publish_version(table.spec, table.id, number_of(staged))
    restore_version(table.spec, table.id, version=1)
    assert table.ids() == [0, 1, 2]

    assert discard_version(table.spec, table.id, number_of(staged))

    assert table.ids(published.version) == [0, 1, 2, 3, 4]


@on("hive")
@pytest.mark.parametrize("is_followed", [False, True])
def test_a_clean_up_keeps_the_files_of_a_publication_that_was_undone_while_it_is_made_again(
    table: Maintained, monkeypatch: pytest.MonkeyPatch, is_followed: bool
) -> None:
    table.write(rows(table.spark, 0, 3))
    staged = number_of(stage(table, 3, 5, "day"))
    publish_version(table.spec, table.id, staged)
    if is_followed:  # by a version that is all that has the files
        table.write(rows(table.spark, 5, 6))
        table.newest.tags.create("first", 1)
        clean_up_versions(table.spec, table.id, older_than=timedelta(0))
        table.newest.tags.delete("first")
    restore_version(table.spec, table.id, version=1)
    commit = Committer.commit

    def commit_after_a_clean_up(*arguments: Any, **options: Any) -> Any:
        clean_up_versions(table.spec, table.id, older_than=timedelta(0))
        return commit(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Committer, "commit", commit_after_a_clean_up)
        publish_version(table.spec, table.id, staged)

    assert table.ids() == [0, 1, 2, 3, 4]
    assert not table.newest.tags.list()


@on("hive")
def test_readers_see_all_rows_of_a_publication_or_none(table: Maintained) -> None:
    table.write(rows(table.spark, 0, 10))
    staged = [stage(table, 10 * number, 10 * number + 10, f"part {number}") for number in range(1, 9)]
    seen: list[int] = []
    with reading(table, seen), ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda one: publish_version(table.spec, table.id, number_of(one)), staged * 2))

    assert table.ids() == list(range(90))
    assert all(count % 10 == 0 for count in seen), seen
    assert len(set(seen)) > 1, "no reader saw a version in between"
    remove_orphans(table.spec, table.id, older_than=timedelta(minutes=10))
    assert table.ids() == list(range(90))


@contextmanager
def reading(table: Maintained, seen: list[int]) -> Iterator[None]:
    """Count the newest version's rows all the time, in another thread."""
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            seen.append(table.newest.count_rows())

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
