"""The properties that identify a Lance table, and that callers can't override."""

import pytest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Expectation


def catalog_table(**parameters: str) -> CatalogTable:
    return CatalogTable(TableId.parse("db$t"), "/x", parameters)


@pytest.mark.parametrize("spelling", ["lance", "LANCE", "Lance", " lance "])
def test_the_table_type_is_recognized_in_any_case(spelling: str) -> None:
    assert table_properties.is_lance(catalog_table(table_type=spelling))


@pytest.mark.parametrize("parameters", [{}, {"table_type": "iceberg"}, {"table_type": ""}])
def test_other_tables_are_not_lance(parameters: dict[str, str]) -> None:
    assert not table_properties.is_lance(catalog_table(**parameters))


@pytest.mark.parametrize(("manager", "managed"), [("impl", True), ("IMPL", True), ("storage", False)])
def test_managed_by_decides_whether_a_table_is_managed(manager: str, managed: bool) -> None:
    assert table_properties.is_managed(catalog_table(managed_by=manager)) is managed


def test_an_empty_managed_table_has_version_0() -> None:
    assert table_properties.managed_version(catalog_table(managed_by="impl")) == 0
    assert table_properties.managed_version(catalog_table(managed_by="impl", version="7")) == 7


def test_an_invalid_version_is_an_error_that_names_the_table() -> None:
    with pytest.raises(InvalidTableStateError, match=r"db\$t.*'new'"):
        table_properties.managed_version(catalog_table(version="new"))


def test_a_new_catalog_table_has_the_identifying_and_the_callers_properties() -> None:
    parameters = table_properties.new_table_parameters({"team": "search"})
    assert parameters.pop("lancens.state").startswith("storage-")
    assert parameters == {
        "team": "search",
        "table_type": "lance",
        "EXTERNAL": "TRUE",
        "managed_by": "storage",
    }


@pytest.mark.parametrize(
    "properties", [{"table_type": "LANCE"}, {"EXTERNAL": "true"}, {"managed_by": "Impl"}]
)
def test_properties_equal_to_the_identifying_ones_are_allowed(properties: dict[str, str]) -> None:
    assert table_properties.new_table_parameters(properties)["table_type"] == "lance"


@pytest.mark.parametrize(
    "properties",
    [
        {"table_type": "iceberg"},
        {"Table_Type": "lance"},
        {"EXTERNAL": "FALSE"},
        {"external": "TRUE"},
        {"external.table.purge": "true"},
        {"managed_by": "me"},
    ],
    ids=lambda properties: next(iter(properties)),
)
def test_properties_that_contradict_identification_are_refused_by_name(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(properties))):
        table_properties.new_table_parameters(properties)


def test_no_two_declarations_have_the_same_state() -> None:
    first, second = (catalog_table(**table_properties.new_table_parameters({}, "impl")) for _ in range(2))
    assert table_properties.unchanged(first) != table_properties.unchanged(second)


def test_a_version_that_another_client_has_moved_is_compared_by_its_number() -> None:
    table = catalog_table(managed_by="impl", version="8", **{"lancens.state": "7-0123456789abcdef"})
    assert table_properties.unchanged(table) == Expectation("version", "8")


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"managed_by": "impl", "version": "8"}, Expectation("version", "8")),
        ({"managed_by": "storage"}, Expectation("managed_by", "storage")),
        ({}, None),
    ],
)
def test_a_table_of_an_earlier_declaration_is_compared_by_what_it_has(
    parameters: dict[str, str], expected: Expectation | None
) -> None:
    assert table_properties.unchanged(catalog_table(**parameters)) == expected
