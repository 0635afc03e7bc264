"""What makes an entry a Lance table, and what a caller's properties can't undo."""

import pytest
from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.metastore import Table


def entry(**parameters: str) -> Table:
    return Table(TableId.parse("db$t"), "/x", parameters)


@pytest.mark.parametrize("spelling", ["lance", "LANCE", "Lance", " lance "])
def test_the_table_type_decides_in_any_case(spelling: str) -> None:
    assert marks.is_lance(entry(table_type=spelling))


@pytest.mark.parametrize("parameters", [{}, {"table_type": "iceberg"}, {"table_type": ""}])
def test_other_tables_are_not_lance(parameters: dict[str, str]) -> None:
    assert not marks.is_lance(entry(**parameters))


@pytest.mark.parametrize(("manager", "managed"), [("impl", True), ("IMPL", True), ("storage", False)])
def test_a_table_is_managed_where_its_entry_says_so(manager: str, managed: bool) -> None:
    assert marks.is_managed(entry(managed_by=manager)) is managed


def test_an_empty_managed_table_has_version_0() -> None:
    assert marks.managed_version(entry(managed_by="impl")) == 0
    assert marks.managed_version(entry(managed_by="impl", version="7")) == 7


def test_a_version_that_is_no_number_is_an_error_that_names_the_table() -> None:
    with pytest.raises(InvalidTableStateError, match=r"db\$t.*'new'"):
        marks.managed_version(entry(version="new"))


def test_a_new_entry_carries_both_marks_and_the_callers_properties() -> None:
    assert marks.entry_parameters({"team": "search"}) == {
        "team": "search",
        "table_type": "lance",
        "EXTERNAL": "TRUE",
        "managed_by": "storage",
    }


@pytest.mark.parametrize(
    "properties", [{"table_type": "LANCE"}, {"EXTERNAL": "true"}, {"managed_by": "Impl"}]
)
def test_saying_again_what_holds_anyway_is_allowed(properties: dict[str, str]) -> None:
    assert marks.entry_parameters(properties)["table_type"] == "lance"


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
def test_what_would_undo_the_identification_is_refused_by_name(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(properties))):
        marks.entry_parameters(properties)
