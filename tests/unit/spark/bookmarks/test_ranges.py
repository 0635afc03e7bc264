"""The range that an execution reads from a bookmark: decided by its first try."""

from pathlib import Path

import pytest

from airflow_provider_lancens import LanceCatalog
from airflow_provider_lancens.namespace.locations import Location
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.spark.bookmarks import fix_range, forget_range
from airflow_provider_lancens.spark.execution import TaskExecution
from airflow_provider_lancens.spark.lance_table import Changes, Table
from tests.support.bookmarked_orders import NAME, Orders


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    return TableFiles(Location.of(str(tmp_path)), {})


def test_later_tries_read_up_to_the_version_of_the_first(files: TableFiles) -> None:
    assert [fix_range(files, "copy", "run 1", 3, newest) for newest in (5, 6, 9)] == [5, 5, 5]


def test_other_executions_and_other_bookmarks_have_ranges_of_their_own(files: TableFiles) -> None:
    fix_range(files, "copy", "run 1", 3, 5)
    assert fix_range(files, "copy", "run 2", 3, 6) == 6
    assert fix_range(files, "bill", "run 1", 3, 7) == 7
    assert fix_range(files, "copy", "run 1", 3, 8) == 5


def test_after_the_bookmark_moved_another_range_begins(files: TableFiles) -> None:
    fix_range(files, "copy", "run 1", 3, 5)
    assert [fix_range(files, "copy", "run 1", 5, newest) for newest in (8, 9)] == [8, 8]


def test_a_range_is_forgotten(files: TableFiles, tmp_path: Path) -> None:
    fix_range(files, "copy", "run 1", 3, 5)
    for _ in range(2):
        forget_range(files, "copy", "run 1")
    assert not [one for one in tmp_path.rglob("*") if one.is_file()]


def test_a_record_without_its_content_still_decides(files: TableFiles, tmp_path: Path) -> None:
    fix_range(files, "copy", "run 1", 3, 5)
    [record] = (tmp_path / "_lancens" / "bookmark-ranges").iterdir()
    record.write_bytes(b"")
    assert fix_range(files, "copy", "run 1", 3, 6) == 5


@pytest.mark.parametrize(
    "name", ["x", ".3.4.json", "3.4.json", "{}.json", "{}.3.json", "{}.3.-1.json", "{}.3.4.5.json"]
)
def test_files_of_others_in_the_folder_are_left_alone(files: TableFiles, tmp_path: Path, name: str) -> None:
    fix_range(files, "copy", "run 1", 3, 5)
    folder = tmp_path / "_lancens" / "bookmark-ranges"
    [record] = folder.iterdir()
    other = folder / name.format(record.name.partition(".")[0])
    record.rename(other)
    assert fix_range(files, "copy", "run 1", 3, 6) == 6
    forget_range(files, "copy", "run 1")
    assert list(folder.iterdir()) == [other]


def test_any_name_of_a_bookmark_is_a_file_below_the_folder(files: TableFiles, tmp_path: Path) -> None:
    fix_range(files, "../../x/y", "dag/task/run:1+00:00", 3, 5)
    [record] = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert record.parent == tmp_path / "_lancens" / "bookmark-ranges"


def test_of_two_tries_at_once_none_moves_the_bookmark_past_what_the_other_one_has_read(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.move(2)
    later: list[Changes] = []
    put = TableFiles.put

    def try_of_task() -> Table:
        return LanceCatalog(lambda: orders.namespace, execution=TaskExecution(lambda: "run 1")).table(
            "orders"
        )

    def put_later(files: TableFiles, path: str, content: bytes) -> None:
        if "bookmark-ranges" in path:
            monkeypatch.setattr(TableFiles, "put", put)
            orders.commit()
            later.append(try_of_task().changes(bookmark=NAME))
        put(files, path, content)

    monkeypatch.setattr(TableFiles, "put", put_later)
    first = try_of_task().changes(bookmark=NAME)
    assert (first.version, later[0].version) == (4, 5)
    with later[0]:
        """What the first try has written, which is then killed, is found."""

    assert orders.bookmark is not None
    assert orders.bookmark.version == 4
    assert not [*orders.folder.rglob("bookmark-ranges/*")]
