"""DeclareTable, RegisterTable, ListTables, DescribeTable, TableExists, RenameTable, DeregisterTable."""

import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.support.backends import RENAME, WIDE_NAMES, Backend


def test_a_declared_table_is_located_beside_its_database_and_has_no_data(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    table = [*db, "clicks"]
    answer = namespace.declare_table({"id": table, "properties": {"owner_team": "search"}})
    described = namespace.describe_table({"id": table, "check_declared": True})
    assert described.location == answer.location
    folder = re.escape(tables_folder(backend, namespace, db[-1]))
    assert re.fullmatch(rf"{folder}/clicks-[0-9a-f]{{12}}/clicks\.lance", described.location)
    assert described.is_only_declared is True
    assert described.properties["owner_team"] == "search"
    assert described.managed_versioning is not True
    assert not list(Path(described.location).rglob("*.manifest"))


def tables_folder(backend: Backend, namespace: LanceNamespace, database: str) -> str:
    """Beside the database's location, or beside the catalog's if that contains it."""
    catalogs = [part for part in backend.parent if part != "hive"]
    root = backend.properties["root"]
    if not catalogs:
        return f"{root}/{database}.db-lance"
    # Every test of a run works in the same catalog, whose folder lies below the root of the first one.
    [catalog] = catalogs
    location = namespace.describe_namespace({"id": [catalog]}).properties["database.location-uri"]
    if location.removeprefix("file:") == f"{root}/{catalog}":
        return f"{root}/{catalog}-lance/{database}.db"
    return f"{root}/{catalog}/{database}.db-lance/{catalog}/{database}.db"


def test_describing_does_not_open_the_data_set_unless_asked(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    assert namespace.describe_table({"id": [*db, "t"]}).is_only_declared is None


def test_a_table_is_declared_at_the_given_location(
    namespace: LanceNamespace, db: list[str], tmp_path: Path
) -> None:
    location = str(tmp_path / "my tables" / "t")
    assert namespace.declare_table({"id": [*db, "t"], "location": location}).location == location
    described = namespace.describe_table({"id": [*db, "t"], "with_table_uri": True})
    assert described.location == location
    assert described.table_uri == f"file://{location}"


def test_declaring_an_existing_table_is_refused(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    with refused_with(ErrorCode.TABLE_ALREADY_EXISTS, "t"):
        namespace.declare_table({"id": [*db, "T"]})


@pytest.mark.parametrize("location", [None, "/somewhere/else"])
def test_declaring_in_a_missing_namespace_is_refused(
    backend: Backend, namespace: LanceNamespace, location: str | None
) -> None:
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.declare_table({"id": [*backend.database(), "t"], "location": location})


@pytest.mark.parametrize(
    "properties",
    [
        {"table_type": "iceberg"},
        {"TABLE_TYPE": "lance"},
        {"EXTERNAL": "FALSE"},
        {"managed_by": "other"},
        {"external.table.purge": "TRUE"},
    ],
    ids=lambda properties: next(iter(properties)),
)
def test_properties_that_contradict_table_identification_are_refused(
    namespace: LanceNamespace, db: list[str], properties: dict[str, str]
) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, next(iter(properties))):
        namespace.declare_table({"id": [*db, "t"], "properties": properties})
    assert namespace.list_tables({"id": db}).tables == []


REFUSED_NAMES = ("a$b", "", " ", "a/b", "..", "a*", "a|b", "a%", "a@b", "a#b", "a\\b", "a\nb", "x" * 300)
ASKED_BY_NAME = ("declare_table", "describe_table", "deregister_table", "table_exists")


def operations_in_turn() -> list[Any]:
    """Each name with one of the operations, which parse it in the same way; with each in `long` runs."""
    return [
        pytest.param(
            operation, name, marks=() if (number + turn) % len(ASKED_BY_NAME) == 0 else pytest.mark.long
        )
        for number, name in enumerate(REFUSED_NAMES)
        for turn, operation in enumerate(ASKED_BY_NAME)
    ]


@pytest.mark.parametrize(("operation", "name"), operations_in_turn())
def test_an_invalid_name_is_refused(
    namespace: LanceNamespace, db: list[str], operation: str, name: str
) -> None:
    with refused_with(ErrorCode.INVALID_INPUT):
        getattr(namespace, operation)({"id": [*db, name]})


@pytest.mark.parametrize("name", ["é", "a-b", "a.b", "two words", "नमस्ते", "x" * 200])
def test_a_name_is_accepted_only_where_the_server_supports_it(
    backend: Backend, namespace: LanceNamespace, db: list[str], name: str
) -> None:
    if WIDE_NAMES in backend.cannot:
        with refused_with(ErrorCode.INVALID_INPUT):
            namespace.declare_table({"id": [*db, name]})
        return
    namespace.declare_table({"id": [*db, name]})
    assert namespace.list_tables({"id": db}).tables == [name]
    assert namespace.describe_table({"id": [*db, name]}).location.endswith(f"/{name}.lance")
    namespace.deregister_table({"id": [*db, name]})


@pytest.mark.parametrize("operation", ["declare_table", "describe_table", "deregister_table", "drop_table"])
def test_an_id_with_a_wrong_number_of_levels_is_refused(
    namespace: LanceNamespace, db: list[str], operation: str
) -> None:
    for wrong in (None, [], db, [*db, "t", "u"]):
        with refused_with(ErrorCode.INVALID_INPUT):
            getattr(namespace, operation)({"id": wrong})


@pytest.mark.parametrize("operation", ["describe_table", "table_exists", "deregister_table", "drop_table"])
def test_a_missing_table_is_not_found(namespace: LanceNamespace, db: list[str], operation: str) -> None:
    with refused_with(ErrorCode.TABLE_NOT_FOUND, "missing"):
        getattr(namespace, operation)({"id": [*db, "missing"]})


def test_pages_of_tables_are_sorted_and_stable_under_creates_and_drops(
    namespace: LanceNamespace, db: list[str]
) -> None:
    for name in ("b", "d", "f", "h"):
        namespace.declare_table({"id": [*db, name]})
    first = namespace.list_tables({"id": db, "limit": 2})
    assert first.tables == ["b", "d"]
    namespace.deregister_table({"id": [*db, "b"]})
    namespace.declare_table({"id": [*db, "a"]})
    namespace.declare_table({"id": [*db, "e"]})
    second = namespace.list_tables({"id": db, "limit": 2, "page_token": first.page_token})
    third = namespace.list_tables({"id": db, "limit": 2, "page_token": second.page_token})
    assert [*second.tables, *third.tables] == ["e", "f", "h"]
    assert not third.page_token


def test_declared_tables_without_data_can_be_excluded_from_a_list(
    namespace: LanceNamespace, db: list[str]
) -> None:
    namespace.declare_table({"id": [*db, "declared"]})
    lance.write_dataset(
        pa.table({"x": [1]}), namespace_client=namespace, table_id=[*db, "written"], mode="create"
    )
    assert namespace.list_tables({"id": db}).tables == ["declared", "written"]
    assert namespace.list_tables({"id": db, "include_declared": False}).tables == ["written"]


@pytest.mark.parametrize("levels", ["root", "too many"])
def test_only_databases_list_tables(namespace: LanceNamespace, db: list[str], levels: str) -> None:
    with refused_with(ErrorCode.INVALID_INPUT):
        namespace.list_tables({"id": [] if levels == "root" else [*db, "t"]})


def test_all_tables_are_listed_by_their_full_identifiers(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    assert "$".join([*db, "t"]) in namespace.list_all_tables({}).tables


def test_a_registered_data_set_is_opened_by_its_name(
    namespace: LanceNamespace, db: list[str], tmp_path: Path
) -> None:
    location = str(tmp_path / "there already.lance")
    lance.write_dataset(pa.table({"x": [1, 2]}), location)
    namespace.register_table({"id": [*db, "t"], "location": location})
    assert lance.dataset(namespace_client=namespace, table_id=[*db, "t"]).count_rows() == 2
    with refused_with(ErrorCode.TABLE_ALREADY_EXISTS):
        namespace.register_table({"id": [*db, "t"], "location": location})


def test_registering_again_changes_the_location_and_invalid_input_changes_nothing(
    namespace: LanceNamespace, db: list[str], tmp_path: Path
) -> None:
    table, locations = [*db, "t"], [str(tmp_path / "a.lance"), str(tmp_path / "b.lance")]
    namespace.register_table({"id": table, "location": locations[0]})
    with refused_with(ErrorCode.INVALID_INPUT, "managed_by"):
        changed = {"location": locations[1], "properties": {"managed_by": "other"}}
        namespace.register_table({"id": table, "mode": "overwrite", **changed})
    assert namespace.describe_table({"id": table}).location == locations[0]
    namespace.register_table({"id": table, "location": locations[1], "mode": "Overwrite"})
    assert namespace.describe_table({"id": table}).location == locations[1]


def test_registering_needs_a_location(namespace: LanceNamespace, db: list[str]) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "location"):
        namespace.register_table({"id": [*db, "t"]})


def test_describing_a_missing_version_is_refused(namespace: LanceNamespace, db: list[str]) -> None:
    table = [*db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    assert namespace.describe_table({"id": table, "version": 1}).version == 1
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "7"):
        namespace.describe_table({"id": table, "version": 7})
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "7"):
        namespace.table_exists({"id": table, "version": 7})


@pytest.mark.parametrize("field", ["tag", "branch"])
def test_unsupported_describe_arguments_are_refused(
    namespace: LanceNamespace, db: list[str], field: str
) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    with refused_with(ErrorCode.UNSUPPORTED, field):
        namespace.describe_table({"id": [*db, "t"], field: "x"})


def test_a_renamed_table_keeps_its_data_and_location(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    before, after = [*db, "before"], [*db, "after"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=before, mode="create")
    location = namespace.describe_table({"id": before}).location
    if RENAME in backend.cannot:
        with refused_with(ErrorCode.UNSUPPORTED, "register"):
            namespace.rename_table({"id": before, "new_table_name": "after"})
        assert namespace.list_tables({"id": db}).tables == ["before"]
        return
    namespace.rename_table({"id": before, "new_table_name": "after"})
    assert namespace.describe_table({"id": after}).location == location
    assert lance.dataset(namespace_client=namespace, table_id=after).count_rows() == 1
    with refused_with(ErrorCode.TABLE_NOT_FOUND):
        namespace.describe_table({"id": before})


def test_renaming_onto_an_existing_table_is_refused(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    for name in ("a", "b"):
        namespace.declare_table({"id": [*db, name]})
    refusal = ErrorCode.UNSUPPORTED if RENAME in backend.cannot else ErrorCode.TABLE_ALREADY_EXISTS
    with refused_with(refusal):
        namespace.rename_table({"id": [*db, "a"], "new_table_name": "b"})
    assert namespace.list_tables({"id": db}).tables == ["a", "b"]


def test_deregistering_keeps_the_data(namespace: LanceNamespace, db: list[str]) -> None:
    table = [*db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    answer = namespace.deregister_table({"id": table})
    assert answer.id == table
    assert lance.dataset(answer.location).count_rows() == 1
    assert namespace.list_tables({"id": db}).tables == []


def test_dropping_removes_only_lance_files(namespace: LanceNamespace, db: list[str]) -> None:
    table = [*db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    location = Path(namespace.describe_table({"id": table}).location)
    (location / "notes.txt").write_text("mine")
    files = [file for file in location.rglob("*") if file.is_file()]
    plan = namespace.plan_drop_table({"id": table})  # type: ignore[attr-defined]
    assert (plan.files, plan.other_files) == (len(files) - 1, 1)
    assert all(file.exists() for file in files)
    namespace.drop_table({"id": table})
    assert [path.name for path in location.iterdir()] == ["notes.txt"]
    assert namespace.list_tables({"id": db}).tables == []


def test_data_used_by_another_table_is_not_dropped(namespace: LanceNamespace, db: list[str]) -> None:
    table = [*db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    location = namespace.describe_table({"id": table}).location
    namespace.register_table({"id": [*db, "twin"], "location": location})
    for drop in (namespace.plan_drop_table, namespace.drop_table):  # type: ignore[attr-defined]
        with refused_with(ErrorCode.INVALID_INPUT, "twin"):
            drop({"id": table})
    assert lance.dataset(location).count_rows() == 1
    assert namespace.list_tables({"id": db}).tables == ["t", "twin"]
