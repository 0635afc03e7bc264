"""Arguments as written by users and templates; invalid ones are refused by name."""

from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import (
    check_choice,
    parse_list,
    parse_mapping,
    parse_namespace,
    parse_settings,
    parse_table,
    parse_text,
    parse_version,
)
from airflow_provider_lancens.operators import LanceRestoreOperator


@pytest.mark.parametrize(("value", "version"), [(7, 7), ("7", 7), (" 7 ", 7), ("0", 0), (0, 0)])
def test_a_version_is_read_from_numbers_and_digits(value: Any, version: int) -> None:
    assert parse_version("after_version", value) == version


@pytest.mark.parametrize("value", [None, "None", ""])
def test_an_empty_rendered_version_is_none(value: Any) -> None:
    assert parse_version("after_version", value) is None


@pytest.mark.parametrize("value", ["seven", -1, "-1", "7.0", 7.5, True, "²", {"version": 7}, "{{ version }}"])
def test_an_invalid_version_is_refused_by_name(value: Any) -> None:
    with pytest.raises(AirflowFailException, match=r"after_version=.*not a version; expected a whole number"):
        parse_version("after_version", value)


def test_a_table_and_a_namespace_are_read() -> None:
    assert str(parse_table("sales$Orders")) == "sales$orders"
    assert str(parse_namespace("Sales")) == "sales"


@pytest.mark.parametrize("text", ["", "sales$", "$orders", "sales$$orders", None, 2013, ["sales$orders"]])
def test_an_invalid_table_is_refused_by_name(text: Any) -> None:
    with pytest.raises(AirflowFailException, match=r"table=.*write it as database\$table"):
        parse_table(text)


def test_an_invalid_namespace_is_refused_by_name() -> None:
    with pytest.raises(AirflowFailException, match=r"namespace='sales\$'.*write it as database"):
        parse_namespace("sales$")


@pytest.mark.parametrize("value", [None, "", "None"])
def test_an_empty_rendered_value_is_none_or_empty(value: Any) -> None:
    assert parse_text(value) is None
    assert parse_mapping("op_kwargs", value) == parse_settings("properties", value) == {}
    assert parse_list("foreign_tables", value, "names") == []


def test_text_rendered_as_a_number_is_text_again() -> None:
    assert (parse_text(201301), parse_text(" 2013-01 ")) == ("201301", "2013-01")


@pytest.mark.parametrize(
    "template", ["{{ params.value }}", "{{ params.value[:2] }}{{ params.value[2:] }}", ""]
)
@pytest.mark.parametrize("value", ["2026_11_01", "1_0", "0x10", "1e5", "20261101"])
def test_text_that_native_rendering_takes_for_a_number_stays_text(template: str, value: str) -> None:
    with DAG(dag_id="dag", render_template_as_native_obj=True):
        task = LanceRestoreOperator(task_id="task", table=template or value, version=template or value)
    task.render_template_fields({"params": {"value": value}})  # type: ignore[typeddict-item]
    assert (task.table, task.version) == (value, value)


def test_a_number_that_is_rendered_natively_stays_a_number() -> None:
    with DAG(dag_id="dag", render_template_as_native_obj=True):
        task = LanceRestoreOperator(task_id="task", table="db$t", version="{{ params.value }}")
    task.render_template_fields({"params": {"value": 10}})  # type: ignore[typeddict-item]
    assert task.version == 10


def test_settings_are_converted_to_strings() -> None:
    given = {"a": "x", "cores": 2, "share": 0.5, "on": True}
    assert parse_settings("spark_conf", given) == {"a": "x", "cores": "2", "share": "0.5", "on": "true"}


@pytest.mark.parametrize("value", [None, ["x"], {"x": "y"}])
def test_an_invalid_setting_is_named(value: Any) -> None:
    with pytest.raises(
        AirflowFailException, match=r"spark_conf\['a'\]: is of type \w+; expected text, a number"
    ):
        parse_settings("spark_conf", {"a": value})


def test_any_sequence_of_names_is_a_list_and_an_invalid_name_is_reported() -> None:
    assert parse_list("table", ("db$a",), "names") == ["db$a"]
    with pytest.raises(AirflowFailException, match=r"^table: contains a value of type int; expected names$"):
        parse_list("table", ["db$a", 7], "names")


def test_an_invalid_choice_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match="if_exists: expected one of skip, fail, got 'replace'"):
        check_choice("if_exists", "replace", ("skip", "fail"))
