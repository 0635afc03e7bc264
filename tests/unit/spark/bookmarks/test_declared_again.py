"""A table that is dropped and declared again while a consumer reads the one before."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from lance_namespace.errors import InvalidTableStateError

from tests.unit.spark.every_verb import TABLE, Lake, rows


@pytest.fixture(params=["storage", "impl"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A table of three versions."""
    made = Lake(str(tmp_path), request.param)
    declare(made, 1, 2, 3)
    return made


def declare(lake: Lake, *numbers: int) -> None:
    lake.namespace.declare_table(TABLE)
    for number in numbers:
        lake.table().append(rows(number))


def test_a_new_bookmark_passes_over_no_version_of_the_new_table(lake: Lake) -> None:
    with refused(), lake.table().changes(bookmark="c"):
        lake.namespace.drop_table(TABLE)
        declare(lake, 4, 5, 6, 7)

    with lake.table().changes(bookmark="c") as changes:
        assert (changes.previous_version, changes.version) == (0, 4)
    assert [one.version for one in lake.table().bookmarks()] == [4]


def test_a_bookmark_of_the_new_table_stays(lake: Lake) -> None:
    lake.table().move_bookmark("c", 1)
    with refused(), lake.table().changes(bookmark="c"):
        lake.namespace.drop_table(TABLE)
        declare(lake, 4, 5, 6, 7)
        lake.table().move_bookmark("c", 1)

    assert [one.version for one in lake.table().bookmarks()] == [1]


def refused() -> AbstractContextManager[object]:
    return pytest.raises(
        InvalidTableStateError, match=r"dropped and declared again.*bookmark 'c' was not moved"
    )
