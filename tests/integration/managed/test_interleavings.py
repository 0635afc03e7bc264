"""Concurrent changes between two steps of a reader or a writer."""

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.managed.publication import Publication
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from tests.conformance.codes import refused_with
from tests.integration.managed.commit_points import POINTS, Point, SimulatedDeath, simulate_death
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake

BEFORE_LISTING = Point(Manifests, "newest", after=False, committed=True)
AFTER_STAT = Point(Manifests, "stat", after=True, committed=True)
BEFORE_STAT = Point(Manifests, "stat", after=False, committed=True)
RECORDED = Point(Publication, "record", after=True, committed=False)


@pytest.fixture
def other(lake: Lake, table: ManagedTable) -> ManagedTable:
    """The same table, through another client's namespace."""
    return table.through(lake.connect())


def test_a_reader_during_publication_finds_the_manifest(table: ManagedTable, other: ManagedTable) -> None:
    for row, moment in enumerate((BEFORE_STAT, AFTER_STAT), start=2):
        request = table.stage(row)
        with POINTS["after-the-commit"].ended_by(simulate_death), pytest.raises(SimulatedDeath):
            table.commit(request)
        with moment.interrupted_by(lambda: other.namespace.compare_table(other.parts)):
            found = table.namespace.describe_table_version({"id": table.parts, "version": row})
        assert found.version.manifest_path.endswith(table.final(row))


def test_a_reader_during_the_first_commit_reads_it(lake: Lake, database: str) -> None:
    table = lake.declare(database)
    other = table.through(lake.connect())
    with BEFORE_LISTING.interrupted_by(lambda: other.append(1)):
        assert table.open().version == 1


def test_commits_during_a_comparison_are_not_reported_as_bypass(
    table: ManagedTable, other: ManagedTable
) -> None:
    with BEFORE_LISTING.interrupted_by(lambda: other.append(2)):
        assert table.namespace.compare_table(table.parts).verdict == "consistent"
    with BEFORE_LISTING.interrupted_by(lambda: other.append(3)):
        described = table.namespace.describe_table({"id": table.parts, "check_declared": True})
        assert described.context["managed.verdict"] == "consistent"


@pytest.mark.parametrize("moment", [BEFORE_STAT, RECORDED], ids=["before-stat", "when-it-is-recorded"])
def test_a_commit_conflict_is_reported_as_such(
    table: ManagedTable, other: ManagedTable, moment: Point
) -> None:
    request = table.stage(2)
    with moment.interrupted_by(lambda: other.append(3)), refused_with(ErrorCode.CONCURRENT_MODIFICATION):
        table.commit(request)
    assert table.rows() == table.rows_by_path() == [1, 3]
    assert table.recorded == []


@pytest.mark.parametrize("moment", [BEFORE_STAT, RECORDED], ids=["before-stat", "when-it-is-recorded"])
def test_lance_retries_after_a_commit_conflict(
    table: ManagedTable, other: ManagedTable, moment: Point
) -> None:
    with moment.interrupted_by(lambda: other.append(3)):
        assert table.append(2) == 3
    assert table.rows() == table.rows_by_path() == [1, 2, 3]
    assert table.staged == table.recorded == []
