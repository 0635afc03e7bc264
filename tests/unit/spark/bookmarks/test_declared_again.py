"""A table that is dropped and declared again: results and bookmarks of the one before aren't used for it."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
from tests.unit.spark.every_verb import NAME, SPARK, TABLE, Lake, rows


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


@pytest.mark.parametrize("pinned", ["a result", "an XCom", "an event", "a version"])
def test_a_version_of_the_former_table_is_not_read_from_the_new_one(lake: Lake, pinned: str) -> None:
    result = lake.table().append(rows(9))
    refs: dict[str, Any] = {
        "a result": result,
        "an XCom": json.loads(json.dumps(result.as_dict())),
        "an event": {"table": result.table, "version": result.version, **result.event},
    }
    table = lake.table().at(4) if pinned == "a version" else lake.table().lake.table(refs[pinned])
    assert table.to_arrow().num_rows == 4
    lake.namespace.drop_table(TABLE)
    declare(lake, 4, 5, 6, 7, 8)

    reads = [table.to_arrow, table.history, table.stats, table.tags, table.bookmarks]
    for read in (*reads, lambda: table.schema, lambda: table.at(3), lambda: table.changes(1)):
        with refused():
            read()
    with refused():
        table.move_bookmark("c")

    assert lake.table().bookmarks() == []
    assert lake.table().lake.table({"table": result.table, "version": 4}).to_arrow().num_rows == 4


def test_changes_whose_range_was_fixed_before_are_not_read_from_the_new_table(lake: Lake) -> None:
    changes = LanceCatalog(lambda: lake.namespace, spark=SPARK).table(NAME).changes(after_version=1)
    assert len(changes.read().collect()) == 2
    lake.namespace.drop_table(TABLE)
    declare(lake, 4, 5, 6, 7)

    with refused():
        changes.read()


def test_a_publication_is_not_found_in_the_new_table(lake: Lake) -> None:
    staged = lake.table().append(rows(4), stage=True, key="staged")
    empty = lake.table().append(rows(), stage=True)
    published = lake.table().publish(staged)
    assert lake.table().publish(published).outcome == "found"
    lake.namespace.drop_table(TABLE)
    declare(lake, 5)
    for number in (6, 7, 8):
        lake.table().append(rows(number), key=str(number))

    for result in (staged, empty, published):
        with refused():
            lake.table().publish(result.as_dict())


def test_the_text_of_a_location_may_differ(lake: Lake) -> None:
    result = lake.table().append(rows(9)).as_dict()

    place = result["location"]
    for location in (f"file://{place}", f"{place}/", place.replace("/", "//"), f"{place}/.", "", None):
        assert lake.table().lake.table({**result, "location": location}).to_arrow().num_rows == 4


def test_a_table_is_the_same_through_a_symbolic_link(lake: Lake, tmp_path: Path) -> None:
    result = lake.table().append(rows(9)).as_dict()
    link = tmp_path / "link"
    link.symlink_to(Path(result["location"]).parent)
    through_link = {**result, "location": str(link / Path(result["location"]).name)}

    assert lake.table().lake.table(through_link).to_arrow().num_rows == 4
    lake.namespace.drop_table(TABLE)
    declare(lake, 4, 5, 6, 7)
    with refused():
        lake.table().lake.table(through_link).to_arrow()


@pytest.mark.parametrize("location", [7, "../orders", "s3://key:secret@bucket/t.lance"])
def test_an_invalid_location_of_a_result_is_refused(lake: Lake, location: Any) -> None:
    result = lake.table().append(rows(9)).as_dict()

    with pytest.raises(InvalidInputError, match="location: ") as error:
        lake.table().lake.table({**result, "location": location})
    assert "secret" not in str(error.value)


def refused() -> AbstractContextManager[object]:
    return pytest.raises(InvalidTableStateError, match=r"dropped and declared again")
