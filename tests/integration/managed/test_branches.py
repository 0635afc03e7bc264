"""Branches of managed tables: the storage is the version authority of branches, not of the main branch."""

import lance
import pytest
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.integration.managed.managed_table import ManagedTable, rows_of
from tests.support.lakes import NEW


@pytest.fixture
def branch(table: ManagedTable) -> lance.LanceDataset:
    """A branch at version 1, with row 1 of the main branch."""
    return table.open().create_branch("team/try-out")


def checked_out(table: ManagedTable, version: int | None = None) -> lance.LanceDataset:
    return table.open().checkout_version(("team/try-out", version))


def test_commits_to_a_branch_leave_main_unchanged(table: ManagedTable, branch: lance.LanceDataset) -> None:
    branch.insert(NEW)
    branch.delete("row = 1")
    assert rows_of(checked_out(table)) == [9]
    assert rows_of(checked_out(table, 2)) == [1, 9]
    assert list(table.open().branches.list()) == ["team/try-out"]
    assert (table.version, table.rows(), table.finals) == (1, [1], [1])
    assert table.append(2) == 2
    assert (rows_of(checked_out(table)), table.rows()) == ([9], [1, 2])
    assert table.namespace.compare_table(table.parts).verdict == "consistent"


def test_two_writers_on_a_branch_lose_nothing(table: ManagedTable, branch: lance.LanceDataset) -> None:
    other = checked_out(table)
    branch.insert(NEW)
    other.insert(NEW)
    assert rows_of(checked_out(table)) == [1, 9, 9]
    request = {"id": table.parts, "branch": "team/try-out"}
    listed = table.namespace.list_table_versions(request).versions
    assert [one.version for one in listed] == [1, 2, 3]


def test_a_branch_starts_at_a_branch_and_is_deleted(table: ManagedTable, branch: lance.LanceDataset) -> None:
    branch.insert(NEW)
    assert rows_of(branch.create_branch("second")) == [1, 9]
    table.open().branches.delete("second")
    table.open().branches.delete("team/try-out")
    assert table.open().branches.list() == {}
    with pytest.raises(ValueError, match="Not found"):
        checked_out(table)
    assert (table.rows(), table.append(2)) == ([1], 2)


def test_the_main_branch_can_be_given_by_name(table: ManagedTable) -> None:
    named = {"id": table.parts, "branch": "main", "version": 1}
    assert table.namespace.describe_table_version(named).version.version == 1
    table.append_directly(20)
    assert len(table.namespace.list_table_versions({"id": table.parts, "branch": "main"}).versions) == 1


def test_a_version_missing_from_a_branch_is_not_found(table: ManagedTable) -> None:
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "branch 'b'", "7"):
        table.namespace.describe_table_version({"id": table.parts, "branch": "b", "version": 7})
