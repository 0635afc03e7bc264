"""DeclareTable, RegisterTable, ListTables, DescribeTable, TableExists, RenameTable, DeregisterTable."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.conformance.conftest import RENAME, WIDE_NAMES, Backend


def test_a_declared_table_lies_below_its_database_and_holds_no_data(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    table = [*db, "clicks"]
    answer = namespace.declare_table({"id": table, "properties": {"owner_team": "search"}})
    described = namespace.describe_table({"id": table, "check_declared": True})
    assert described.location == answer.location
    assert described.location.endswith(f"{db[-1]}.db/clicks.lance")
    assert described.is_only_declared is True
    assert described.properties["owner_team"] == "search"
    assert described.managed_versioning is not True
    assert not list(Path(described.location).rglob("*.manifest"))


def test_describe_leaves_the_location_alone_unless_asked(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    assert namespace.describe_table({"id": [*db, "t"]}).is_only_declared is None


def test_a_table_is_declared_where_it_is_told(
    namespace: LanceNamespace, db: list[str], tmp_path: Path
) -> None:
    place = str(tmp_path / "my tables" / "t")
    assert namespace.declare_table({"id": [*db, "t"], "location": place}).location == place
    described = namespace.describe_table({"id": [*db, "t"], "with_table_uri": True})
    assert described.location == place
    assert described.table_uri == f"file://{place}"


def test_declaring_an_existing_table_is_refused(namespace: LanceNamespace, db: list[str]) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    with refused_with(ErrorCode.TABLE_ALREADY_EXISTS, "t"):
        namespace.declare_table({"id": [*db, "T"]})


@pytest.mark.parametrize("place", [None, "/somewhere/else"])
def test_declaring_in_a_missing_namespace_is_refused(
    backend: Backend, namespace: LanceNamespace, place: str | None
) -> None:
    with refused_with(ErrorCode.NAMESPACE_NOT_FOUND):
        namespace.declare_table({"id": [*backend.database(), "t"], "location": place})


@pytest.mark.parametrize(
    "properties",
    [
        {"table_type": "iceberg"},
        {"TABLE_TYPE": "lance"},
        {"EXTERNAL": "FALSE"},
        {"managed_by": "nobody"},
        {"external.table.purge": "TRUE"},
    ],
    ids=lambda properties: next(iter(properties)),
)
def test_properties_that_would_undo_the_identification_are_refused(
    namespace: LanceNamespace, db: list[str], properties: dict[str, str]
) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, next(iter(properties))):
        namespace.declare_table({"id": [*db, "t"], "properties": properties})
    assert namespace.list_tables({"id": db}).tables == []


@pytest.mark.parametrize(
    "name", ["a$b", "", " ", "a/b", "..", "a*", "a|b", "a%", "a@b", "a#b", "a\\b", "a\nb", "x" * 300]
)
@pytest.mark.parametrize("operation", ["declare_table", "describe_table", "deregister_table", "table_exists"])
def test_a_name_that_no_server_holds_is_refused(
    namespace: LanceNamespace, db: list[str], operation: str, name: str
) -> None:
    with refused_with(ErrorCode.INVALID_INPUT):
        getattr(namespace, operation)({"id": [*db, name]})


@pytest.mark.parametrize("name", ["é", "a-b", "a.b", "two words", "नमस्ते", "x" * 200])
def test_a_name_that_some_servers_hold_is_held_there_and_refused_elsewhere(
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


def test_tables_are_listed_sorted_in_pages_that_survive_creates_and_drops(
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


def test_a_listing_can_leave_out_tables_that_are_only_declared(
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
    place = str(tmp_path / "there already.lance")
    lance.write_dataset(pa.table({"x": [1, 2]}), place)
    namespace.register_table({"id": [*db, "t"], "location": place})
    assert lance.dataset(namespace_client=namespace, table_id=[*db, "t"]).count_rows() == 2
    with refused_with(ErrorCode.TABLE_ALREADY_EXISTS):
        namespace.register_table({"id": [*db, "t"], "location": place})


def test_registering_anew_points_the_entry_elsewhere_and_bad_input_leaves_it(
    namespace: LanceNamespace, db: list[str], tmp_path: Path
) -> None:
    table, places = [*db, "t"], [str(tmp_path / "a.lance"), str(tmp_path / "b.lance")]
    namespace.register_table({"id": table, "location": places[0]})
    with refused_with(ErrorCode.INVALID_INPUT, "managed_by"):
        bad = {"managed_by": "nobody"}
        namespace.register_table({"id": table, "location": places[1], "mode": "overwrite", "properties": bad})
    assert namespace.describe_table({"id": table}).location == places[0]
    namespace.register_table({"id": table, "location": places[1], "mode": "Overwrite"})
    assert namespace.describe_table({"id": table}).location == places[1]


def test_registering_needs_a_location(namespace: LanceNamespace, db: list[str]) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "location"):
        namespace.register_table({"id": [*db, "t"]})


def test_a_described_version_must_exist(namespace: LanceNamespace, db: list[str]) -> None:
    table = [*db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    assert namespace.describe_table({"id": table, "version": 1}).version == 1
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "7"):
        namespace.describe_table({"id": table, "version": 7})
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "7"):
        namespace.table_exists({"id": table, "version": 7})


@pytest.mark.parametrize("field", ["tag", "branch"])
def test_what_describe_cannot_honor_it_refuses(namespace: LanceNamespace, db: list[str], field: str) -> None:
    namespace.declare_table({"id": [*db, "t"]})
    with refused_with(ErrorCode.UNSUPPORTED, field):
        namespace.describe_table({"id": [*db, "t"], field: "x"})


def test_a_renamed_table_keeps_its_data_and_its_place(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    before, after = [*db, "before"], [*db, "after"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=before, mode="create")
    place = namespace.describe_table({"id": before}).location
    if RENAME in backend.cannot:
        with refused_with(ErrorCode.UNSUPPORTED, "register"):
            namespace.rename_table({"id": before, "new_table_name": "after"})
        assert namespace.list_tables({"id": db}).tables == ["before"]
        return
    namespace.rename_table({"id": before, "new_table_name": "after"})
    assert namespace.describe_table({"id": after}).location == place
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


def test_deregistering_leaves_the_data(namespace: LanceNamespace, db: list[str]) -> None:
    table = [*db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    answer = namespace.deregister_table({"id": table})
    assert answer.id == table
    assert lance.dataset(answer.location).count_rows() == 1
    assert namespace.list_tables({"id": db}).tables == []


def test_dropping_removes_what_is_lances_own_and_nothing_else(
    namespace: LanceNamespace, db: list[str]
) -> None:
    table = [*db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    place = Path(namespace.describe_table({"id": table}).location)
    (place / "notes.txt").write_text("mine")
    namespace.drop_table({"id": table})
    assert [path.name for path in place.iterdir()] == ["notes.txt"]
    assert namespace.list_tables({"id": db}).tables == []


def test_data_that_another_entry_points_at_is_not_dropped(namespace: LanceNamespace, db: list[str]) -> None:
    table = [*db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    place = namespace.describe_table({"id": table}).location
    namespace.register_table({"id": [*db, "twin"], "location": place})
    with refused_with(ErrorCode.INVALID_INPUT, "twin"):
        namespace.drop_table({"id": table})
    assert lance.dataset(place).count_rows() == 1
    assert namespace.list_tables({"id": db}).tables == ["t", "twin"]
