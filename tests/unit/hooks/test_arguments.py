"""Arguments come as people and templates write them; what can't be meant is refused by name."""

from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.arguments import (
    check_choice,
    parse_namespace,
    parse_table,
    parse_version,
)


@pytest.mark.parametrize(("value", "version"), [(7, 7), ("7", 7), (" 7 ", 7), ("0", 0), (0, 0)])
def test_a_version_is_read_from_numbers_and_digits(value: Any, version: int) -> None:
    assert parse_version("after_version", value) == version


@pytest.mark.parametrize("value", [None, "None", ""])
def test_no_version_is_what_a_template_makes_of_nothing(value: Any) -> None:
    assert parse_version("after_version", value) is None


@pytest.mark.parametrize("value", ["seven", -1, "-1", "7.0", 7.5, True, "²", {"version": 7}, "{{ version }}"])
def test_what_is_no_version_is_refused_by_name(value: Any) -> None:
    with pytest.raises(AirflowFailException, match=r"after_version=.*not a version; allowed: a whole number"):
        parse_version("after_version", value)


def test_a_table_and_a_namespace_are_read() -> None:
    assert str(parse_table("sales$Orders")) == "sales$orders"
    assert str(parse_namespace("Sales")) == "sales"


@pytest.mark.parametrize("text", ["", "sales$", "$orders", "sales$$orders"])
def test_what_can_be_no_table_is_refused_by_name(text: str) -> None:
    with pytest.raises(AirflowFailException, match=r"table=.*write it as database\$table"):
        parse_table(text)


def test_what_can_be_no_namespace_is_refused_by_name() -> None:
    with pytest.raises(AirflowFailException, match=r"namespace='sales\$'.*write it as database"):
        parse_namespace("sales$")


def test_a_word_that_is_no_choice_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="if_exists='replace'; allowed: skip, fail"):
        check_choice("if_exists", "replace", ("skip", "fail"))
