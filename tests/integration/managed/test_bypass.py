"""Writers by path beside a managed table: their commits aren't shown unasked, aren't lost, and are told."""

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.commits import Publication
from tests.conformance.codes import refused_with
from tests.integration.managed.conftest import Lake
from tests.integration.managed.deaths import POINTS, Died, Point, vanish
from tests.integration.managed.table import ManagedTable


@pytest.fixture
def diverged(table: ManagedTable) -> ManagedTable:
    """Version 2 was committed with the row 2; before it had its final name, a writer by path took that."""
    request = table.stage(2)
    with POINTS["after-the-commit"].of_death(vanish), pytest.raises(Died):
        table.commit(request)
    assert table.append_by_path(20) == 2
    return table


def context(table: ManagedTable) -> dict[str, str]:
    described = table.namespace.describe_table({"id": table.parts, "check_declared": True})
    return dict(described.context)


def test_a_commit_by_path_is_not_shown_by_any_version(table: ManagedTable) -> None:
    table.append_by_path(20)
    assert table.rows() == [1]
    assert table.open().latest_version == 1
    with pytest.raises(ValueError, match="no version 2"):
        table.open(2)
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND):
        table.namespace.describe_table({"id": table.parts, "version": 2})
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND):
        table.namespace.table_exists({"id": table.parts, "version": 2})
    listed = table.namespace.list_table_versions({"id": table.parts}).versions
    assert [one.version for one in listed] == [1]


def test_nothing_is_committed_beside_a_commit_by_path(
    table: ManagedTable, caplog: pytest.LogCaptureFixture
) -> None:
    request = table.stage(2)
    table.append_by_path(20)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "by path", "adopt"):
        table.commit(request)
    assert "by path" in caplog.text  # Lance's core drops the words of an error
    with pytest.raises(OSError, match="unknown"):
        table.append(3)
    assert (table.version, table.rows(), table.rows_by_path()) == (1, [1], [1, 20])
    assert table.recorded == []


def test_commits_by_path_are_adopted(table: ManagedTable) -> None:
    table.append_by_path(20)
    table.append_by_path(30)
    found = table.namespace.adopt_table(table.parts)
    assert (found.verdict, found.metastore_version, found.storage_version) == ("storage_ahead", 1, 3)
    assert table.namespace.compare_table(table.parts).verdict == "consistent"
    assert table.rows() == [1, 20, 30]
    assert table.append(4) == 4


def test_commits_by_path_whose_manifests_are_removed_are_forgotten(table: ManagedTable) -> None:
    table.append_by_path(20)
    table.remove(table.final(2))
    assert table.append(2) == 2
    assert table.rows() == table.rows_by_path() == [1, 2]


def test_a_table_that_was_first_written_by_path_is_not_shown_as_one(lake: Lake, database: str) -> None:
    table = lake.declare(database)
    table.append_by_path(20)
    with pytest.raises(ValueError, match="adopt"):
        table.open()
    with pytest.raises(OSError, match="adopt"):
        table.append(2)
    assert context(table)["managed.verdict"] == "storage_ahead"
    table.namespace.adopt_table(table.parts)
    assert table.append(2) == 2
    assert table.rows() == [2, 20]


def test_what_was_committed_is_read_where_a_writer_by_path_has_its_name(diverged: ManagedTable) -> None:
    for _ in range(2):
        assert diverged.rows() == [1, 2]
        assert diverged.rows_by_path() == [
            1,
            20,
        ]  # Lance copies a staged manifest over it, if it is given one
    assert rows_of_version(diverged, 2) == [1, 2]
    assert diverged.namespace.describe_table({"id": diverged.parts, "version": 2}).version == 2


def test_nothing_is_built_on_a_diverged_version(table: ManagedTable) -> None:
    opened = table.open()
    request = table.stage(2)
    with POINTS["after-the-commit"].of_death(vanish), pytest.raises(Died):
        table.commit(request)
    table.append_by_path(20)
    # It opened version 1, and finds what came after by path: its manifest holds 1 and 20, but not 2.
    with pytest.raises(OSError, match="unknown"):
        opened.insert(opened.to_table())
    with pytest.raises(OSError, match="unknown"):
        table.append(3)
    assert (table.version, table.rows(), table.rows_by_path()) == (2, [1, 2], [1, 20])


def test_a_diverged_table_is_told_in_its_description(diverged: ManagedTable) -> None:
    diverged.append_by_path(30)
    found = context(diverged)
    assert (found["managed.verdict"], found["managed.storage-version"]) == ("diverged", "3")
    assert "abandon" in found["managed.words"]
    plain = diverged.namespace.describe_table({"id": diverged.parts})
    assert (plain.version, plain.context) == (2, None)


def test_a_diverged_table_is_whole_again_without_the_commits_by_path(diverged: ManagedTable) -> None:
    diverged.remove(diverged.final(2))
    assert diverged.rows() == diverged.rows_by_path() == [1, 2]
    assert diverged.namespace.compare_table(diverged.parts).verdict == "consistent"
    assert diverged.append(3) == 3


def test_a_committed_version_is_given_up_only_where_that_is_asked_for(diverged: ManagedTable) -> None:
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "abandon"):
        diverged.namespace.adopt_table(diverged.parts)
    with refused_with(ErrorCode.INVALID_TABLE_STATE):
        diverged.namespace.convert_table(diverged.parts, managed_by="storage")
    with refused_with(ErrorCode.INVALID_TABLE_STATE):
        diverged.append_by_path(30)
        diverged.namespace.advance_table_version(diverged.parts, expected=2, new=3)
    assert diverged.rows() == [1, 2]
    assert diverged.namespace.adopt_table(diverged.parts, abandon=True).verdict == "diverged"
    assert diverged.rows() == [1, 20, 30]
    assert diverged.append(3) == 4


def test_a_writer_by_path_that_comes_between_look_and_name_changes_no_answer(table: ManagedTable) -> None:
    request = table.stage(2)
    before_the_name = Point(Publication, "finish", after=False, committed=True)
    with before_the_name.interrupted_by(lambda: table.append_by_path(20)):
        answer = table.commit(request)
    assert answer.version == 2
    assert answer.manifest_path.endswith(table.recorded[0])
    assert (table.rows(), table.rows_by_path()) == ([1, 2], [1, 20])


def test_a_lost_manifest_is_told_and_set_back(table: ManagedTable) -> None:
    table.append(2)
    table.remove(table.final(2))
    with pytest.raises(ValueError, match="compare and repair"):
        table.open()
    assert context(table)["managed.verdict"] == "metastore_ahead"
    found = table.namespace.adopt_table(table.parts)
    assert (found.verdict, found.metastore_version, found.storage_version) == ("metastore_ahead", 2, 1)
    assert table.rows() == [1]
    assert table.append(3) == 2
    assert table.rows() == table.rows_by_path() == [1, 3]


def test_a_consistent_table_says_so(table: ManagedTable) -> None:
    assert context(table)["managed.verdict"] == "consistent"


def rows_of_version(table: ManagedTable, version: int) -> list[int]:
    return sorted(table.open(version).to_table()["row"].to_pylist())
