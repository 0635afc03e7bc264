"""The part of a mapped task's default key that says what the task was given."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, AirflowSkipException
from airflow_provider_lancens.operators._spark.idempotency import default_key
from airflow_provider_lancens.operators._spark.mapped_item import mapped_item
from airflow_provider_lancens.spark import FileSource


def item(index: int, value: Any) -> str | None:
    given = SimpleNamespace(value=value)
    task = SimpleNamespace(task_id="load", _get_specified_expand_input=lambda: given)
    context: Any = {"ti": SimpleNamespace(map_index=index), "task": task}
    return mapped_item(context)


def items(value: Any, count: int) -> list[str | None]:
    return [item(index, value) for index in range(count)]


def load() -> None:
    """A function that a task is mapped over."""


@dataclass
class Plain:
    path: str


def test_an_item_is_known_by_what_it_is_not_by_its_position() -> None:
    before, after = items({"f": ["a", "b"]}, 2), items({"f": ["new", "b", "a"]}, 3)

    assert before == [after[2], after[1]]
    assert len(set(after)) == 3


def test_equal_items_have_a_number_among_them() -> None:
    first, other, second = items([{"f": "a"}, {"f": "b"}, {"f": "a"}], 3)

    assert second == f"{first}#2"
    assert item(1, [{"f": "new"}, {"f": "a"}]) == first
    assert other not in (first, second)


class Mapped(list[Any]):
    """What ``.map`` returns: its function is called for an item when that is read."""

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        if value == "unwanted":
            raise AirflowSkipException(value)
        if value == "broken":
            raise AirflowFailException(value)
        if value == "unread":
            raise ConnectionError(value)
        return value


@pytest.mark.parametrize("form", [lambda found: {"f": found}, lambda found: found], ids=["expand", "kwargs"])
def test_an_item_that_a_function_skips_or_fails_concerns_its_own_task_alone(form: Any) -> None:
    given = form(Mapped(["a", "unwanted", "b", "broken", "a"]))

    assert [item(index, given) for index in (0, 2, 4)] == items(form(["a", "b", "a"]), 3)
    with pytest.raises(AirflowSkipException, match="unwanted"):
        item(1, given)
    with pytest.raises(AirflowFailException, match="broken"):
        item(3, given)


@pytest.mark.parametrize("form", [lambda found: {"f": found}, lambda found: found], ids=["expand", "kwargs"])
def test_an_item_that_cannot_be_read_fails_the_tasks_after_it_which_may_be_equal(form: Any) -> None:
    given = form(Mapped(["a", "b", "unread", "a"]))

    assert [item(index, given) for index in (0, 1)] == items(form(["a", "b"]), 2)
    for index in (2, 3):
        with pytest.raises(ConnectionError, match="unread"):
            item(index, given)


def test_the_last_list_of_a_product_varies_fastest_as_in_airflow() -> None:
    product = items({"f": ["a", "b"], "day": [1, 2, 3]}, 6)

    assert product[4] == item(0, [{"f": "b", "day": 2}])
    assert len(set(product)) == 6


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        1.5,
        "a",
        b"a",
        date(2026, 11, 1),
        datetime(2026, 11, 1, tzinfo=UTC),
        Decimal("1.0"),
        Path("/a"),
        {"b", "a"},
        ("a", 1),
        {"k": ["v"]},
        FileSource("csv", "/a"),
        Plain("/a"),
        load,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_the_same_in_every_process_identify_an_item(value: Any) -> None:
    assert item(0, {"f": [value]}) == item(1, {"f": ["other", value]})
    assert item(0, {"f": [value]}) != item(0, {"f": ["other"]})


def test_a_table_that_was_read_before_is_the_same_item_at_any_version() -> None:
    written = {"table": "db$t", "version": 3, "inserted": 5, "seconds": 0.1, "outcome": "done"}
    found = {"table": "db$t", "version": 4, "inserted": 5, "seconds": 9.9, "outcome": "skipped"}

    assert item(0, {"inputs": [written]}) == item(0, {"inputs": [found]})
    assert item(0, {"inputs": [written]}) != item(0, {"inputs": [{**written, "table": "db$other"}]})


@pytest.mark.parametrize(
    "value", [object(), lambda: None, {1: "a"}, [object()]], ids=["object", "lambda", "n", "list"]
)
def test_a_value_that_differs_in_each_process_needs_a_key(value: Any) -> None:
    with pytest.raises(AirflowFailException, match=r"^key: a mapped task has no default if .*set it"):
        item(0, {"f": [value]})


def test_without_what_it_was_given_a_mapped_task_has_no_default_key() -> None:
    instance = SimpleNamespace(dag_id="dag", task_id="load", map_index=4)

    with pytest.raises(AirflowFailException, match="Airflow doesn't tell what it was given"):
        default_key({"ti": instance, "run_id": "manual__1"})  # type: ignore[typeddict-item]
