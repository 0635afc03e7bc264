"""A writer that dies at any point of a commit leaves a table that reads right, and that is written on."""

import obstore
import pytest
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.integration.managed.conftest import Lake
from tests.integration.managed.deaths import POINTS, Died, Point, vanish
from tests.integration.managed.table import ManagedTable, Request

AFTER_THE_COMMIT = POINTS["after-the-commit"]

at_every_point = pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
once_committed = pytest.mark.parametrize(
    "point",
    [point for point in POINTS.values() if point.committed],
    ids=[k for k in POINTS if POINTS[k].committed],
)


def die_at(point: Point, table: ManagedTable, row: int) -> Request:
    """Commit a row and die on the way; answers the request."""
    request = table.stage(row)
    with point.of_death(vanish), pytest.raises(Died):
        table.commit(request)
    return request


@at_every_point
def test_the_table_reads_right_and_the_next_commit_goes_through(
    lake: Lake, table: ManagedTable, point: Point
) -> None:
    die_at(point, table, row=2)
    with lake.connect() as another:
        survivor = table.through(another)
        expected = [1, 2] if point.committed else [1]
        assert survivor.rows() == expected
        assert survivor.version == survivor.open().version == len(expected)
        assert survivor.append(3) == len(expected) + 1
        assert survivor.rows() == survivor.rows_by_path() == [*expected, 3]
        assert survivor.finals == list(range(1, len(expected) + 2))


@once_committed
def test_a_reader_finishes_what_was_committed(table: ManagedTable, point: Point) -> None:
    die_at(point, table, row=2)
    assert table.rows() == [1, 2]
    assert table.rows_by_path() == [1, 2]
    assert table.staged == table.recorded == []


@once_committed
def test_the_next_writer_finishes_what_was_committed(table: ManagedTable, point: Point) -> None:
    opened = table.open()
    die_at(point, table, row=2)
    opened.insert(opened.to_table())  # it opened version 1, and looks at nothing else
    assert table.rows() == table.rows_by_path() == [1, 1, 2]
    assert table.staged == table.recorded == []


@at_every_point
def test_a_commit_that_is_asked_for_again_is_made_once(table: ManagedTable, point: Point) -> None:
    request = die_at(point, table, row=2)
    answer = table.commit(request)
    assert answer.version == 2
    assert answer.manifest_path.endswith(table.final(2))
    assert table.rows() == table.rows_by_path() == [1, 2]
    assert table.commit(request).version == 2
    assert table.staged == table.recorded == []


@at_every_point
def test_a_commit_that_is_asked_for_again_after_others_is_refused(table: ManagedTable, point: Point) -> None:
    request = die_at(point, table, row=2)
    others = table.append(3)
    if others == 3:
        with refused_with(ErrorCode.CONCURRENT_MODIFICATION):
            table.commit(request)
        assert table.rows() == [1, 2, 3]
    else:
        with refused_with(ErrorCode.CONCURRENT_MODIFICATION):
            table.commit(request)
        assert table.rows() == [1, 3]


@at_every_point
def test_a_table_that_is_deregistered_takes_nothing_with_it(table: ManagedTable, point: Point) -> None:
    die_at(point, table, row=2)
    place = table.namespace.deregister_table({"id": table.parts}).location
    again = {"id": table.parts, "location": place, "properties": {"managed_by": "impl"}}
    table.namespace.register_table(again)
    assert table.rows() == ([1, 2] if point.committed else [1])
    assert table.version == len(table.rows())


def test_the_very_first_commit_is_finished_too(lake: Lake, database: str) -> None:
    table = lake.declare(database)
    die_at(AFTER_THE_COMMIT, table, row=1)
    described = table.namespace.describe_table({"id": table.parts, "check_declared": True})
    assert (described.version, described.is_only_declared) == (1, False)
    assert table.rows() == table.rows_by_path() == [1]
    assert table.append(2) == 2


def test_a_dropped_table_leaves_nothing_of_a_commit_behind(lake: Lake, database: str) -> None:
    table = lake.declare(database)
    die_at(AFTER_THE_COMMIT, table, row=1)
    store = table.store
    table.namespace.drop_table({"id": table.parts})
    assert obstore.list(store).collect() == []
