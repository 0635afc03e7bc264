"""Identifiers parse and format ``a$b$c``, and refuse invalid text."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_lancens.identifiers import (
    InvalidIdentifierError,
    NamespaceId,
    TableId,
    is_addressable,
)

PART = st.text("abcdefghij_0123456789", min_size=1, max_size=12)


@given(st.lists(PART, min_size=1, max_size=4))
def test_an_identifiers_text_is_parsed_back(parts: list[str]) -> None:
    table = TableId.of(parts)
    assert TableId.parse(str(table)) == table
    assert table.namespace.table(table.name) == table


def test_identifiers_are_lowercased_like_the_servers_do() -> None:
    assert TableId.parse("DB$Clicks").parts == ("db", "clicks")


def test_a_namespace_without_levels_is_the_root() -> None:
    root = NamespaceId.parse("")
    assert root.is_root
    assert root.parent == root
    assert root.child("db").parent == root


@pytest.mark.parametrize("parts", [[""], ["a", " "], ["a$b"], ["a", 7], [None]])
def test_an_invalid_level_is_refused(parts: list[str]) -> None:
    with pytest.raises(InvalidIdentifierError, match="identifier"):
        TableId.of(parts)


def test_a_table_needs_a_name() -> None:
    with pytest.raises(InvalidIdentifierError, match="needs a name"):
        TableId.parse("")


def test_identifiers_are_values() -> None:
    table = TableId.parse("db$t")
    assert pickle.loads(pickle.dumps(table)) == table
    assert len({table, TableId.parse("db$t")}) == 1


@pytest.mark.parametrize(("name", "addressable"), [("t", True), ("a$b", False), (" ", False)])
def test_an_invalid_identifier_is_refused(name: str, addressable: bool) -> None:
    assert is_addressable(name) is addressable


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", ("t",)),
        ("db.t", ("db", "t")),
        ("db$t", ("db", "t")),
        ("cat.DB.t", ("cat", "db", "t")),
        ("cat$db$t", ("cat", "db", "t")),
        ("db.`a.b`", ("db", "a.b")),
        ("db$`a.b`", ("db", "a.b")),
        ("`db`.t", ("db", "t")),
    ],
)
def test_a_person_writes_levels_with_dots_or_as_they_are_printed(text: str, parts: tuple[str, ...]) -> None:
    assert TableId.written(text).parts == parts


def test_an_identifier_with_two_readings_is_refused_with_both() -> None:
    with pytest.raises(InvalidIdentifierError) as refused:
        TableId.written("db$a.b")

    assert "'db$a$b', written 'db.a.b'" in str(refused.value)
    assert "written 'db.`a.b`'" in str(refused.value)
    assert TableId.written("db.a.b").parts == ("db", "a", "b")
    assert TableId.written("db.`a.b`").parts == ("db", "a.b")


@pytest.mark.parametrize(
    "text", ["", ".", "db.", ".t", "db..t", "db.$t", "db.`t", "db.`t`x", "db.``", None, 7]
)
def test_what_a_person_writes_is_refused_if_a_level_is_empty_or_unfinished(text: str) -> None:
    with pytest.raises(InvalidIdentifierError, match=r"identifier|not a string"):
        TableId.written(text)


@pytest.mark.parametrize(("text", "parts"), [("db$a.b", ("db", "a.b")), ("db.t", ("db", "t"))])
def test_a_printed_identifier_has_one_reading(text: str, parts: tuple[str, ...]) -> None:
    assert TableId.of_result(text).parts == parts
    assert TableId.of_result(str(TableId.of(parts))).parts == parts
