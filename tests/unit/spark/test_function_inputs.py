"""What a function may read of its inputs, and what its key and its fingerprint have of each reading."""

import json

import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.function_inputs import WHOLE, FunctionInput, FunctionInputs

INPUTS = FunctionInputs(
    {
        "orders": FunctionInput("db$orders", 7, 5),
        "rates": FunctionInput("db$rates", 3),
        "returns": FunctionInput("db$returns", 2, 0),
    }
)


def test_changes_may_be_read_of_inputs_that_say_what_they_follow() -> None:
    assert INPUTS.readings() == [
        WHOLE,
        frozenset({"orders"}),
        frozenset({"returns"}),
        frozenset({"orders", "returns"}),
    ]
    assert FunctionInputs().readings() == [WHOLE]


def test_too_many_inputs_with_changes_are_refused_since_each_set_of_them_has_a_key() -> None:
    inputs = {f"t{number}": FunctionInput(f"db$t{number}", 7, 5) for number in range(7)}

    with pytest.raises(InvalidInputError, match=r"'t0', .* have a 'previous_version'.* at most 6 .* Set key"):
        FunctionInputs(inputs).readings()
    assert len(FunctionInputs(dict(list(inputs.items())[:6])).readings()) == 64


@pytest.mark.parametrize(
    ("reading", "ranges"),
    [
        (WHOLE, []),
        ({"orders"}, ["changes@db$orders/5"]),
        ({"returns", "orders"}, ["changes@db$orders/5", "changes@db$returns/0"]),
    ],
)
def test_a_key_has_where_the_changes_begin_that_are_read(reading: frozenset[str], ranges: list[str]) -> None:
    assert INPUTS.ranges(reading) == ranges


def test_one_table_under_two_names_has_one_range() -> None:
    twice = FunctionInputs({"a": FunctionInput("db$t", 7, 5), "b": FunctionInput("db$t", 7, 5)})

    assert twice.ranges(frozenset({"a", "b"})) == ["changes@db$t/5"]


def test_a_fingerprint_has_the_versions_and_where_changes_begin_that_are_read() -> None:
    rates, returns = ("db$rates", 3), ("db$returns", 2)

    assert INPUTS.identity(WHOLE) == {"orders": ("db$orders", 7), "rates": rates, "returns": returns}
    assert INPUTS.identity(frozenset({"orders"}))["orders"] == ("db$orders", 7, 5)


def test_a_fingerprint_differs_for_another_table_of_the_name_at_the_same_version() -> None:
    former, new = (
        FunctionInputs({"orders": FunctionInput("db$orders", 7, 5, location)}) for location in ("/a", "/b")
    )

    for reading in (WHOLE, frozenset({"orders"})):
        assert former.identity(reading) != new.identity(reading)
    assert FunctionInputs.parse(json.loads(json.dumps(former.plain()))) == former


def test_inputs_are_the_same_after_they_were_serialized() -> None:
    assert FunctionInputs.parse(json.loads(json.dumps(INPUTS.plain()))) == INPUTS
