"""Invalid catalog tables of managed tables, and invalid requests."""

from typing import Any

import pytest
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake, on_lakes_in_turn, rewrite


def description(table: ManagedTable) -> Any:
    return table.namespace.describe_table({"id": table.parts})


@on_lakes_in_turn(
    "version", {"empty": "", "word": "seven", "negative": "-1", "decimal": "1.0", "long": "1" * 300}
)
def test_an_invalid_version_is_reported_and_repaired(table: ManagedTable, version: str) -> None:
    rewrite(table, version=version)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "'version'"):
        description(table)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "'version'"):
        table.append(2)
    found = table.namespace.adopt_table(table.parts)
    assert (found.verdict, found.storage_version) == ("no_version", 1)
    assert table.append(3) == 2
    assert table.rows() == [1, 3]


def test_a_missing_version_is_reported_and_repaired(lake: Lake, database: str) -> None:
    table = lake.declare(database, managed_by="storage")
    rewrite(table, managed_by="impl")
    assert (table.version, description(table).managed_versioning) == (0, True)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "no parameter", "adopt"):
        table.commit(table.stage(1))
    table.append_directly(20)
    with pytest.raises(OSError, match="adopt"):
        table.append(2)
    assert table.namespace.compare_table(table.parts).verdict == "no_version"
    table.namespace.adopt_table(table.parts)
    assert table.append(2) == 2
    assert table.rows() == [2, 20]


@on_lakes_in_turn("version", {" 1": " 1", "01": "01"})
def test_a_version_in_another_writers_notation_is_read(table: ManagedTable, version: str) -> None:
    rewrite(table, version=version, managed_by="IMPL")
    assert table.append(2) == 2
    assert description(table).properties["version"] == "2"


RECORDS = (
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
)


@on_lakes_in_turn("record", {str(number): record for number, record in enumerate(RECORDS)})
def test_an_unreadable_record_is_reported_by_name(table: ManagedTable, record: str) -> None:
    rewrite(table, lancens__commit=record)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "lancens.commit", "remove the parameter"):
        table.namespace.describe_table_version({"id": table.parts, "version": 1})
    with pytest.raises(OSError, match=r"lancens\.commit"):
        table.append(2)
    rewrite(table, "lancens.commit")
    assert table.append(2) == 2


def test_a_record_of_another_version_is_ignored(table: ManagedTable) -> None:
    rewrite(table, lancens__commit='{"version": 7, "staged": "x", "scheme": "V2"}')
    assert table.rows() == [1]
    assert table.append(2) == 2


NEVER_STAGED = "t.lance/_versions/18446744073709551613.manifest-never-staged"
COMMITTED = "t.lance/_versions/18446744073709551614.manifest"


@on_lakes_in_turn(
    "refused",
    {
        "not-there": ("manifest_path", NEVER_STAGED, "does not exist"),
        "a-version-already": ("manifest_path", COMMITTED, "staged manifest"),
        "empty": ("manifest_path", "", "staged manifest"),
        "unknown-scheme": ("naming_scheme", "V3", "naming_scheme"),
    },
)
def test_an_invalid_new_version_is_refused_and_changes_nothing(
    table: ManagedTable, refused: tuple[str, str, str]
) -> None:
    field, value, message = refused
    request = table.stage(2)
    with refused_with(ErrorCode.INVALID_INPUT, message):
        table.commit({**request, field: value})
    assert (table.version, table.rows(), table.recorded) == (1, [1], [])
    assert table.commit(request).version == 2


def test_a_registered_data_set_starts_at_its_version(lake: Lake, table: ManagedTable) -> None:
    table.append(2)
    managed = {"location": table.location, "properties": {"managed_by": "impl", "version": "7"}}
    again = ManagedTable(table.namespace, (table.id[0], "again"), table.storage_options)
    table.namespace.deregister_table({"id": table.parts})
    table.namespace.register_table({"id": again.parts, **managed})
    assert (again.version, again.rows()) == (2, [1, 2])
    again.append_directly(3)
    table.namespace.register_table({"id": again.parts, **managed, "mode": "overwrite"})
    assert (again.version, again.rows()) == (3, [1, 2, 3])
    assert again.append(4) == 4


def test_a_table_declared_in_place_of_a_dropped_one_is_empty(table: ManagedTable) -> None:
    table.append(2)
    table.namespace.drop_table({"id": table.parts})
    table.namespace.declare_table({"id": table.parts, "properties": {"managed_by": "impl"}})
    assert table.version == 0
    assert table.append(5) == 1
    assert table.rows() == [5]


def test_a_managed_table_in_a_missing_namespace_is_refused(lake: Lake, database: str) -> None:
    with lake.connect() as namespace, refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.declare_table({"id": [database, "t"], "properties": {"managed_by": "impl"}})
