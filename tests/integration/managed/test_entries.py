"""Entries of managed tables as other writers left them, and requests as no writer should send them."""

from typing import Any

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.metastore import Change
from tests.conformance.codes import refused_with
from tests.integration.managed.conftest import Lake
from tests.integration.managed.table import ManagedTable


def rewrite(table: ManagedTable, *removed: str, **parameters: str) -> None:
    """What a foreign writer does to an entry's parameters."""
    named = {key.replace("__", "."): value for key, value in parameters.items()}
    change = Change(named, removed)
    table.namespace._metastore.update_table(TableId.of(table.parts), lambda _: change)


def description(table: ManagedTable) -> Any:
    return table.namespace.describe_table({"id": table.parts})


@pytest.mark.parametrize(
    "version", ["", "seven", "-1", "1.0", "1" * 300], ids=["empty", *["text"] * 3, "long"]
)
def test_a_version_that_is_no_number_is_told_and_repaired(table: ManagedTable, version: str) -> None:
    rewrite(table, version=version)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "'version'"):
        description(table)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "'version'"):
        table.append(2)
    found = table.namespace.adopt_table(table.parts)
    assert (found.verdict, found.storage_version) == ("no_version", 1)
    assert table.append(3) == 2
    assert table.rows() == [1, 3]


def test_a_table_without_a_version_is_told_and_repaired(lake: Lake, database: str) -> None:
    table = lake.declare(database, managed_by="storage")
    rewrite(table, managed_by="impl")
    assert (table.version, description(table).managed_versioning) == (0, True)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "lacks", "adopt"):
        table.commit(table.stage(1))
    table.append_by_path(20)
    with pytest.raises(OSError, match="adopt"):
        table.append(2)
    assert table.namespace.compare_table(table.parts).verdict == "no_version"
    table.namespace.adopt_table(table.parts)
    assert table.append(2) == 2
    assert table.rows() == [2, 20]


@pytest.mark.parametrize("version", [" 1", "01"])
def test_a_version_counts_as_it_is_spelled_by_another_writer(table: ManagedTable, version: str) -> None:
    rewrite(table, version=version, managed_by="IMPL")
    assert table.append(2) == 2
    assert description(table).properties["version"] == "2"


@pytest.mark.parametrize(
    "record",
    [
        "{",
        "[]",
        "7",
        '{"version": 1}',
        '{"version": 1, "staged": 7}',
        '{"version": 1, "staged": "a/b"}',
        '{"version": 1, "staged": "x", "scheme": "V9"}',
        '{"version": 1, "staged": "x", "more": 1}',
        "[" * 30_000,
        '{"version": ' + "1" * 5_000 + "}",
    ],
    ids=range(10),
)
def test_a_record_that_cannot_be_read_is_told_by_name(table: ManagedTable, record: str) -> None:
    rewrite(table, lancens__commit=record)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "lancens.commit", "remove the parameter"):
        table.namespace.describe_table_version({"id": table.parts, "version": 1})
    with pytest.raises(OSError, match=r"lancens\.commit"):
        table.append(2)
    rewrite(table, "lancens.commit")
    assert table.append(2) == 2


def test_a_record_of_another_version_says_nothing(table: ManagedTable) -> None:
    rewrite(table, lancens__commit='{"version": 7, "staged": "x", "scheme": "V2"}')
    assert table.rows() == [1]
    assert table.append(2) == 2


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("manifest_path", "t.lance/_versions/18446744073709551613.manifest-never-staged", "no _versions/"),
        ("manifest_path", "t.lance/_versions/18446744073709551614.manifest", "staged manifest"),
        ("manifest_path", "", "staged manifest"),
        ("naming_scheme", "V3", "naming_scheme"),
    ],
    ids=["not-there", "a-version-already", "empty", "unknown-scheme"],
)
def test_what_cannot_become_a_version_is_refused_and_changes_nothing(
    table: ManagedTable, field: str, value: str, words: str
) -> None:
    request = table.stage(2)
    with refused_with(ErrorCode.INVALID_INPUT, words):
        table.commit({**request, field: value})
    assert (table.version, table.rows(), table.recorded) == (1, [1], [])
    assert table.commit(request).version == 2


def test_a_branch_is_refused(table: ManagedTable) -> None:
    with refused_with(ErrorCode.UNSUPPORTED, "branch"):
        table.commit({**table.stage(2), "branch": "b"})


def test_data_that_is_registered_starts_at_its_version(lake: Lake, table: ManagedTable) -> None:
    table.append(2)
    managed = {"location": table.location, "properties": {"managed_by": "impl", "version": "7"}}
    again = ManagedTable(table.namespace, (table.id[0], "again"), table.storage_options)
    table.namespace.deregister_table({"id": table.parts})
    table.namespace.register_table({"id": again.parts, **managed})
    assert (again.version, again.rows()) == (2, [1, 2])
    again.append_by_path(3)
    table.namespace.register_table({"id": again.parts, **managed, "mode": "overwrite"})
    assert (again.version, again.rows()) == (3, [1, 2, 3])
    assert again.append(4) == 4


def test_what_is_declared_again_in_place_of_a_dropped_table_is_empty(table: ManagedTable) -> None:
    table.append(2)
    table.namespace.drop_table({"id": table.parts})
    table.namespace.declare_table({"id": table.parts, "properties": {"managed_by": "impl"}})
    assert table.version == 0
    assert table.append(5) == 1
    assert table.rows() == [5]


def test_a_managed_table_is_refused_where_there_is_no_namespace(lake: Lake, database: str) -> None:
    with lake.connect() as namespace, refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.declare_table({"id": [database, "t"], "properties": {"managed_by": "impl"}})
