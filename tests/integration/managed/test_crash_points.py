"""A writer killed at any point of a commit leaves a readable and writable table."""

import pickle

import obstore
import pytest
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.integration.managed.commit_points import POINTS, Point, SimulatedDeath, simulate_death
from tests.integration.managed.managed_table import ManagedTable, Request
from tests.support.lakes import Lake, on_lakes_in_turn

AFTER_THE_COMMIT = POINTS["after-the-commit"]

at_every_point = on_lakes_in_turn("point", POINTS)
once_committed = on_lakes_in_turn("point", {name: point for name, point in POINTS.items() if point.committed})


def commit_and_die(point: Point, table: ManagedTable, row: int) -> Request:
    """Commit a row with a simulated death, and return the request."""
    request = table.stage(row)
    with point.ended_by(simulate_death), pytest.raises(SimulatedDeath):
        table.commit(request)
    return request


@at_every_point
def test_the_table_is_readable_and_the_next_commit_succeeds(
    lake: Lake, table: ManagedTable, point: Point
) -> None:
    commit_and_die(point, table, row=2)
    with lake.connect() as another:
        survivor = table.through(another)
        expected = [1, 2] if point.committed else [1]
        assert survivor.rows() == expected
        assert survivor.version == survivor.open().version == len(expected)
        assert survivor.append(3) == len(expected) + 1
        assert survivor.rows() == survivor.rows_by_path() == [*expected, 3]
        assert survivor.finals == list(range(1, len(expected) + 2))


@once_committed
def test_a_reader_publishes_an_unfinished_commit(table: ManagedTable, point: Point) -> None:
    commit_and_die(point, table, row=2)
    assert table.rows() == [1, 2]
    assert table.rows_by_path() == [1, 2]
    assert table.staged == table.recorded == []


@once_committed
def test_the_next_writer_publishes_an_unfinished_commit(table: ManagedTable, point: Point) -> None:
    opened = table.open()
    commit_and_die(point, table, row=2)
    opened.insert(opened.to_table())  # it opened version 1, and reads nothing else
    assert table.rows() == table.rows_by_path() == [1, 1, 2]
    assert table.staged == table.recorded == []


@at_every_point
def test_a_retried_commit_is_made_once(table: ManagedTable, point: Point) -> None:
    request = commit_and_die(point, table, row=2)
    answer = table.commit(request)
    assert answer.version == 2
    assert answer.manifest_path.endswith(table.final(2))
    assert table.rows() == table.rows_by_path() == [1, 2]
    assert table.commit(request).version == 2
    assert table.staged == table.recorded == []


@at_every_point
def test_a_retried_commit_is_refused_after_other_commits(table: ManagedTable, point: Point) -> None:
    request = commit_and_die(point, table, row=2)
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
def test_deregistering_a_table_keeps_an_unfinished_commit(table: ManagedTable, point: Point) -> None:
    commit_and_die(point, table, row=2)
    location = table.namespace.deregister_table({"id": table.parts}).location
    again = {"id": table.parts, "location": location, "properties": {"managed_by": "impl"}}
    table.namespace.register_table(again)
    assert table.rows() == ([1, 2] if point.committed else [1])
    assert table.version == len(table.rows())


def test_an_unfinished_first_commit_is_published(lake: Lake, database: str) -> None:
    table = lake.declare(database)
    commit_and_die(AFTER_THE_COMMIT, table, row=1)
    described = table.namespace.describe_table({"id": table.parts, "check_declared": True})
    assert (described.version, described.is_only_declared) == (1, False)
    assert table.rows() == table.rows_by_path() == [1]
    assert table.append(2) == 2


def test_dropping_a_table_removes_an_unfinished_commit(lake: Lake, database: str) -> None:
    table = lake.declare(database)
    commit_and_die(AFTER_THE_COMMIT, table, row=1)
    store = table.store
    table.namespace.drop_table({"id": table.parts})
    assert obstore.list(store).collect() == []


@once_committed
def test_what_only_reads_finds_the_version_and_writes_nothing(table: ManagedTable, point: Point) -> None:
    commit_and_die(point, table, row=2)
    before = {path: obstore.get(table.store, path).bytes().to_bytes() for path in table.files("")}
    reader = table.through(table.namespace.for_reading())

    for named in ({"id": table.parts, "version": 2}, {"id": table.parts, "check_declared": True}):
        assert table.namespace.describe_table(named).version == 2
    table.namespace.table_exists({"id": table.parts, "version": 2})
    assert reader.rows() == [1, 2]
    assert pickle.loads(pickle.dumps(reader.namespace)).list_table_versions({"id": table.parts}).versions
    assert reader.namespace.compare_table(table.parts).verdict == "consistent"

    after = {path: obstore.get(table.store, path).bytes().to_bytes() for path in table.files("")}
    assert after == before
    assert table.append(3) == 3
    assert table.rows() == table.rows_by_path() == [1, 2, 3]
