"""What a task does with a committed key: its argument, and the run's configuration."""

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators._spark.write_naming import execution_id_of, existing_key_policy


def context(conf: dict[str, Any] | None = None, **instance: Any) -> Any:
    given = {"dag_id": "lake", "task_id": "load", "map_index": -1, "max_tries": 2, **instance}
    return {"ti": SimpleNamespace(**given), "run_id": "manual", "dag_run": SimpleNamespace(conf=conf)}


@pytest.mark.parametrize(
    ("conf", "policy"),
    [
        (None, "skip"),
        ({}, "skip"),
        ({"other": 1}, "skip"),
        ({"lance_on_existing_key": "replace"}, "replace"),
        ({"lance_on_existing_key": {"load": "write_again"}}, "write_again"),
        ({"lance_on_existing_key": {"another": "write_again"}}, "skip"),
    ],
)
def test_the_runs_configuration_wins_over_the_argument(conf: Any, policy: str) -> None:
    assert existing_key_policy("skip", context(conf)) == policy


@pytest.mark.parametrize("asked", ["again", 1, ["replace"], {"load": True}])
def test_an_invalid_run_configuration_fails_without_retry(asked: Any) -> None:
    with pytest.raises(
        AirflowFailException, match="lance_on_existing_key in the run's configuration: expect"
    ):
        existing_key_policy("skip", context({"lance_on_existing_key": asked}))


def test_retries_of_a_task_are_one_execution_and_a_cleared_task_is_another() -> None:
    first = execution_id_of(context(try_number=1))

    assert execution_id_of(context(try_number=2)) == first
    assert execution_id_of(context(try_number=3, max_tries=4)) != first
    assert execution_id_of(context(map_index=1)) != first
    assert execution_id_of(context(task_id="load_more")) != first
