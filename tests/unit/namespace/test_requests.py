"""Requests are models or dicts, and every field is applied or refused."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError
from lance_namespace_urllib3_client import models

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import requests
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore

TWO_LEVELS: Any = SimpleNamespace(namespace_levels=1, check_name=HiveMetastore.check_name)
THREE_LEVELS: Any = SimpleNamespace(namespace_levels=2, check_name=HiveMetastore.check_name)


class RustDict(dict[str, Any]):
    """The type that pylance's core passes: a subclass of dict without attributes."""


@pytest.mark.parametrize(
    "request_",
    [
        models.DescribeTableRequest(id=["db", "t"]),
        {"id": ["db", "t"]},
        RustDict(id=["db", "t"], vend_credentials=True),
    ],
    ids=["model", "dict", "dict of another kind"],
)
def test_a_request_is_a_model_or_a_dict(request_: Any) -> None:
    assert requests.as_model(models.DescribeTableRequest, request_).id == ["db", "t"]


@pytest.mark.parametrize("request_", [None, "db$t", 7, ["db", "t"]])
def test_anything_else_is_refused(request_: Any) -> None:
    with pytest.raises(InvalidInputError, match="DescribeTableRequest or a dict"):
        requests.as_model(models.DescribeTableRequest, request_)


def test_a_field_of_the_wrong_type_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="limit"):
        requests.as_model(models.ListTablesRequest, {"limit": "ten"})


def test_a_request_with_an_identity_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="identity"):
        requests.as_model(models.DescribeTableRequest, {"id": ["db", "t"], "identity": {"api_key": "hush"}})


@pytest.mark.parametrize("word", ["exist_ok", "ExistOk", "EXIST_OK", "existok", "Exist_Ok"])
def test_modes_are_read_in_any_case_and_style(word: str) -> None:
    assert requests.choice(word, ("create", "exist_ok"), "create", "mode") == "exist_ok"


def test_no_mode_means_the_default() -> None:
    assert requests.choice(None, ("create", "exist_ok"), "create", "mode") == "create"


@pytest.mark.parametrize("word", ["", "replace", "exist ok"])
def test_an_unknown_mode_is_refused_with_what_is_allowed(word: str) -> None:
    with pytest.raises(InvalidInputError, match="mode: expected one of create, exist_ok"):
        requests.choice(word, ("create", "exist_ok"), "create", "mode")


def test_a_missing_id_is_the_root_namespace_but_not_a_table() -> None:
    assert requests.namespace_id(None, TWO_LEVELS).is_root
    with pytest.raises(InvalidInputError, match="identifier is required"):
        requests.table_id(None, TWO_LEVELS)


@pytest.mark.parametrize("parts", [["t"], ["a", "b", "t"]])
def test_a_table_id_has_a_fixed_number_of_levels(parts: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="expected: 2"):
        requests.table_id(parts, TWO_LEVELS)


@pytest.mark.parametrize(("parts", "metastore"), [(["err.t"], TWO_LEVELS), (["hive.err", "t"], THREE_LEVELS)])
def test_levels_that_are_separated_by_dots_are_refused_with_the_right_identifier(
    parts: list[str], metastore: Any
) -> None:
    right = "$".join(parts).replace(".", "$")
    with pytest.raises(InvalidInputError, match=re.escape(f"write it as {right!r}")):
        requests.table_id(parts, metastore)


def test_levels_of_a_namespace_that_are_separated_by_dots_are_refused_with_the_right_identifier() -> None:
    with pytest.raises(InvalidInputError, match=re.escape("write it as 'hive$err'")):
        requests.namespace_id(["hive.err"], THREE_LEVELS)


@pytest.mark.parametrize("name", ["a$b", "", " ", "../x", "a*", "a|b", "a%", "@a#b", "a.b", "é", "x" * 129])
def test_names_the_server_cannot_store_are_refused_before_anything_is_sent(name: str) -> None:
    with pytest.raises(InvalidInputError):
        requests.table_id(["db", name], TWO_LEVELS)


def test_ids_are_case_insensitive() -> None:
    assert requests.table_id(["DB", "T"], TWO_LEVELS) == requests.table_id(["db", "t"], TWO_LEVELS)


@pytest.mark.parametrize(
    ("text", "metastore", "parts"),
    [
        ("sales$raw", TWO_LEVELS, ("sales", "raw")),
        ("Sales.Raw", TWO_LEVELS, ("sales", "raw")),
        (" sales.raw ", TWO_LEVELS, ("sales", "raw")),
        ("sales$raw.v1", TWO_LEVELS, ("sales", "raw.v1")),
        ("sales.`raw.v1`", TWO_LEVELS, ("sales", "raw.v1")),
        ("hive.sales.raw", THREE_LEVELS, ("hive", "sales", "raw")),
    ],
)
def test_a_foreign_table_is_named_as_an_author_writes_it_or_a_plan_prints_it(
    text: str, metastore: Any, parts: tuple[str, ...]
) -> None:
    assert requests.foreign_tables_of([text], metastore).named == {TableId(parts)}


@pytest.mark.parametrize(
    ("text", "metastore", "form"),
    [
        ("raw", TWO_LEVELS, "database.table"),
        ("hive.sales.raw", TWO_LEVELS, "database.table"),
        ("sales.raw", THREE_LEVELS, "catalog.database.table"),
    ],
)
def test_a_foreign_table_with_other_levels_is_refused_with_the_form(
    text: str, metastore: Any, form: str
) -> None:
    table = re.escape(repr(text))
    said = rf"^foreign tables: table {table}: expected an identifier of \d levels, {form}, or '\*'"
    with pytest.raises(InvalidInputError, match=said):
        requests.foreign_tables_of([text], metastore)
