"""Managed tables: their version is in the metastore, and advanced by compare-and-set."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.support.backends import BACKENDS, COMPARE_AND_SET, cannot, params

ROW = pa.table({"x": [1]})

ABLE = [name for name in BACKENDS if COMPARE_AND_SET not in cannot(name)]
UNABLE = [name for name in BACKENDS if COMPARE_AND_SET in cannot(name)]

on_servers_that_can = pytest.mark.parametrize("backend", params(ABLE), indirect=True)


@pytest.fixture
def table(namespace: LanceNamespace, db: list[str]) -> list[str]:
    """A declared managed table without data."""
    declared = [*db, "managed"]
    answer = namespace.declare_table({"id": declared, "properties": {"managed_by": "impl", "team": "search"}})
    assert answer.managed_versioning is True
    return declared


def append(namespace: LanceNamespace, table: list[str]) -> lance.LanceDataset:
    return lance.write_dataset(ROW, namespace_client=namespace, table_id=table, mode="append")


def location(namespace: LanceNamespace, table: list[str]) -> str:
    return str(namespace.describe_table({"id": table}).location)


def version(namespace: LanceNamespace, table: list[str]) -> int | None:
    return namespace.describe_table({"id": table}).version


@on_servers_that_can
def test_a_declared_managed_table_is_at_version_0(namespace: LanceNamespace, table: list[str]) -> None:
    described = namespace.describe_table({"id": table})
    assert described.version == 0
    assert described.managed_versioning is True
    assert namespace.list_table_versions({"id": table}).versions == []


@on_servers_that_can
def test_each_commit_advances_the_version_in_the_metastore(
    namespace: LanceNamespace, table: list[str]
) -> None:
    for expected in (1, 2, 3):
        append(namespace, table)
        assert version(namespace, table) == expected
    opened = lance.dataset(namespace_client=namespace, table_id=table)
    by_path = lance.dataset(location(namespace, table))
    assert (opened.version, opened.count_rows()) == (by_path.version, by_path.count_rows()) == (3, 3)
    assert lance.dataset(namespace_client=namespace, table_id=table, version=2).count_rows() == 2
    assert not list(Path(location(namespace, table), "_versions").glob("*manifest-*"))


@on_servers_that_can
def test_a_commit_changes_no_other_parameter(namespace: LanceNamespace, table: list[str]) -> None:
    append(namespace, table)
    properties = namespace.describe_table({"id": table}).properties
    assert properties["team"] == "search"
    assert properties["version"] == "1"


@on_servers_that_can
def test_versions_are_listed_in_both_orders_and_in_pages(namespace: LanceNamespace, table: list[str]) -> None:
    for _ in range(3):
        append(namespace, table)

    def listed(**how: object) -> list[int]:
        return [one.version for one in namespace.list_table_versions({"id": table, **how}).versions]

    assert listed() == [1, 2, 3]
    assert listed(descending=True) == [3, 2, 1]
    assert listed(descending=True, limit=1) == [3]
    first = namespace.list_table_versions({"id": table, "limit": 2})
    assert listed(limit=2, page_token=first.page_token) == [3]


@on_servers_that_can
def test_a_missing_version_is_not_found(namespace: LanceNamespace, table: list[str]) -> None:
    append(namespace, table)
    for missing in (0, 2):
        with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND):
            namespace.describe_table_version({"id": table, "version": missing})


@on_servers_that_can
@pytest.mark.parametrize("taken", [1, 3])
def test_a_stale_commit_is_refused_and_changes_nothing(
    namespace: LanceNamespace, table: list[str], taken: int
) -> None:
    append(namespace, table)
    request = {"id": table, "version": taken, "manifest_path": "x/_versions/staged", "naming_scheme": "V2"}
    with refused_with(ErrorCode.CONCURRENT_MODIFICATION):
        namespace.create_table_version(request)
    assert version(namespace, table) == 1


@on_servers_that_can
def test_creating_a_version_of_a_storage_managed_table_is_refused(
    namespace: LanceNamespace, db: list[str]
) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    with refused_with(ErrorCode.INVALID_INPUT, "managed_by"):
        namespace.create_table_version({"id": [*db, "t"], "version": 1, "manifest_path": "a/_versions/b"})


@on_servers_that_can
def test_a_direct_commit_is_neither_shown_nor_overwritten_and_can_be_adopted(
    namespace: LanceNamespace, table: list[str]
) -> None:
    append(namespace, table)
    lance.write_dataset(ROW, location(namespace, table), mode="append")
    assert lance.dataset(namespace_client=namespace, table_id=table).version == 1
    with pytest.raises(OSError, match=r"."):
        append(namespace, table)
    assert lance.dataset(location(namespace, table)).count_rows() == 2

    comparison = namespace.compare_table(table)  # type: ignore[attr-defined]
    assert comparison.verdict == "storage_ahead"
    namespace.adopt_table(table)  # type: ignore[attr-defined]
    append(namespace, table)
    assert lance.dataset(namespace_client=namespace, table_id=table).count_rows() == 3
    assert namespace.compare_table(table).verdict == "consistent"  # type: ignore[attr-defined]


@on_servers_that_can
def test_a_metastore_version_ahead_of_the_storage_is_reported_and_can_be_reset(
    namespace: LanceNamespace, table: list[str]
) -> None:
    append(namespace, table)
    append(namespace, table)
    newest = namespace.describe_table_version({"id": table, "version": 2}).version.manifest_path
    Path("/", newest).unlink()
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "repair"):
        namespace.describe_table_version({"id": table, "version": 2})
    assert namespace.compare_table(table).verdict == "metastore_ahead"  # type: ignore[attr-defined]
    namespace.adopt_table(table)  # type: ignore[attr-defined]
    assert lance.dataset(namespace_client=namespace, table_id=table).version == 1
    append(namespace, table)
    assert version(namespace, table) == 2


@on_servers_that_can
def test_a_table_is_converted_to_managed_and_back(namespace: LanceNamespace, db: list[str]) -> None:
    table = [*db, "t"]
    lance.write_dataset(ROW, namespace_client=namespace, table_id=table, mode="create")
    assert namespace.convert_table(table, managed_by="impl") is True  # type: ignore[attr-defined]
    assert namespace.convert_table(table, managed_by="impl") is False  # type: ignore[attr-defined]
    append(namespace, table)
    assert version(namespace, table) == 2
    assert namespace.convert_table(table, managed_by="storage") is True  # type: ignore[attr-defined]
    described = namespace.describe_table({"id": table})
    assert described.managed_versioning is False
    assert described.version is None
    lance.write_dataset(ROW, described.location, mode="append")
    assert lance.dataset(namespace_client=namespace, table_id=table).count_rows() == 3


@on_servers_that_can
def test_a_version_is_advanced_by_compare_and_set(namespace: LanceNamespace, table: list[str]) -> None:
    append(namespace, table)
    lance.write_dataset(ROW, location(namespace, table), mode="append")
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "7"):
        namespace.advance_table_version(table, expected=1, new=7)  # type: ignore[attr-defined]
    assert namespace.advance_table_version(table, expected=1, new=2) is True  # type: ignore[attr-defined]
    assert namespace.advance_table_version(table, expected=1, new=2) is False  # type: ignore[attr-defined]
    lance.write_dataset(ROW, location(namespace, table), mode="append")
    with refused_with(ErrorCode.CONCURRENT_MODIFICATION, "version 2"):
        namespace.advance_table_version(table, expected=1, new=3)  # type: ignore[attr-defined]
    assert version(namespace, table) == 2


@pytest.mark.parametrize("backend", params(UNABLE), indirect=True)
def test_a_server_without_compare_and_set_is_refused_before_anything_is_written(
    namespace: LanceNamespace, db: list[str]
) -> None:
    managed = {"managed_by": "impl"}
    namespace.declare_table({"id": [*db, "t"]})
    for _ in range(10):
        with refused_with(ErrorCode.UNSUPPORTED, "HIVE-26882"):
            namespace.declare_table({"id": [*db, "managed"], "properties": managed})
        with refused_with(ErrorCode.UNSUPPORTED, "HIVE-26882"):
            namespace.convert_table([*db, "t"], managed_by="impl")  # type: ignore[attr-defined]
    plan = namespace.plan_drop_namespace({"id": db})  # type: ignore[attr-defined]
    assert [table.name for table in (*plan.lance_tables, *plan.foreign_tables)] == ["t"]
    assert namespace.describe_table({"id": [*db, "t"]}).managed_versioning is False
