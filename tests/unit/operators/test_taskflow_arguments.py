"""Arguments of the functions for TaskFlow tasks."""

from typing import Any, cast

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.taskflow import SparkLake

LAKE = SparkLake(None, cast("Any", None), cast("Any", None))
"""Without Spark and a connection: what is refused, is refused before anything is done."""
ROWS: Any = None


@pytest.mark.parametrize("value", [None, "", "None"])
@pytest.mark.parametrize("argument", ["version", "as_of", "tag", "filter"])
def test_a_read_refuses_what_a_task_that_was_marked_as_success_has_returned(
    argument: str, value: Any
) -> None:
    with pytest.raises(AirflowFailException, match=rf"^{argument}={value!r}: it is passed, but empty"):
        LAKE.read("db$t", **{argument: value})


def test_a_version_is_refused_by_position_too() -> None:
    wait: dict[str, Any] = {"version": None}
    with pytest.raises(AirflowFailException, match=r"^version=None: it is passed, but empty"):
        LAKE.read("db$t", wait["version"])


def test_a_read_of_changes_refuses_an_empty_filter() -> None:
    with pytest.raises(AirflowFailException, match=r"^filter='': it is passed, but empty"):
        LAKE.read_changes({"table": "db$t", "previous_version": 1, "version": 2}, filter="")


@pytest.mark.parametrize("value", [None, ""])
@pytest.mark.parametrize("argument", ["where", "delete_when", "key", "fingerprint"])
def test_a_write_refuses_what_a_task_that_was_marked_as_success_has_returned(
    argument: str, value: Any
) -> None:
    with pytest.raises(AirflowFailException, match=rf"^{argument}={value!r}: it is passed, but empty"):
        LAKE.write(ROWS, "db$t", mode="overwrite", **{argument: value})
