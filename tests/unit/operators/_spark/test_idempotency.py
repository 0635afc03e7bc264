"""What a task does with a committed key: its argument, and the run's configuration."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators._spark.idempotency import (
    execution_id_of,
    existing_key_policy,
    former_task_ids,
    key_of_moved_task,
)
from airflow_provider_lancens.spark import WriteIdentity, connect
from airflow_provider_lancens.spark.table.resolved_table import resolved_table


def context(conf: dict[str, Any] | None = None, **instance: Any) -> Any:
    given = {"dag_id": "lake", "task_id": "load", "map_index": -1, "max_tries": 2, **instance}
    return {"ti": SimpleNamespace(**given), "run_id": "manual", "dag_run": SimpleNamespace(conf=conf)}


@pytest.mark.parametrize(
    ("conf", "policy"),
    [
        (None, "skip"),
        ({}, "skip"),
        ({"other": 1}, "skip"),
        ({"lance_on_existing_key": "redo"}, "redo"),
        ({"lance_on_existing_key": {"load": "write_again"}}, "write_again"),
        ({"lance_on_existing_key": {"another": "write_again"}}, "skip"),
    ],
)
def test_the_runs_configuration_wins_over_the_argument(conf: Any, policy: str) -> None:
    assert existing_key_policy("skip", context(conf)) == policy


@pytest.mark.parametrize("asked", ["again", 1, ["redo"], {"load": True}])
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


def test_a_run_that_is_made_again_under_its_id_is_another_execution() -> None:
    def run(hour: int) -> Any:
        started = datetime(2026, 11, 1, hour, tzinfo=UTC)
        return {**context(), "dag_run": SimpleNamespace(conf=None, start_date=started)}

    assert execution_id_of(run(1)) == execution_id_of(run(1))
    assert execution_id_of(run(1)) != execution_id_of(run(2))


@pytest.mark.parametrize(
    ("task_id", "others", "former"),
    [
        ("load", (), []),
        ("group.load", (), ["load"]),
        ("outer.group.load", (), ["group.load", "load"]),
        ("group.load", ("load",), []),
    ],
)
def test_a_task_that_was_moved_into_a_group_had_the_id_without_it(
    task_id: str, others: tuple[str, ...], former: list[str]
) -> None:
    dag = SimpleNamespace(has_task=lambda one: one in others)
    moved = {**context(task_id=task_id), "task": SimpleNamespace(dag=dag)}

    assert former_task_ids(moved) == former  # type: ignore[arg-type]


def test_of_several_tasks_that_a_moved_task_became_one_has_its_former_key(tmp_path: Path) -> None:
    lake = connect("dir", {"root": str(tmp_path)})
    orders = lake.declare_table("orders")
    dag = SimpleNamespace(has_task=lambda one: one in ("eu.load", "us.load"))

    def load(task_id: str, rows: list[int], clears: int = 1) -> str:
        moved = {**context(task_id=task_id, max_tries=clears), "task": SimpleNamespace(dag=dag)}
        with resolved_table(lake.namespace, "orders") as target:
            key = key_of_moved_task(f"lake/{task_id}/day", moved, target)
        identity = WriteIdentity(key, execution_id=execution_id_of(moved))  # type: ignore[arg-type]
        orders.append(pa.table({"id": rows}), key=identity)
        return key

    load("load", [0], clears=0)
    keys = [load("eu.load", [1]), load("us.load", [2])]
    again = [load("us.load", [3], clears=2), load("eu.load", [4], clears=2)]

    assert keys == ["lake/load/day", "lake/us.load/day"]
    assert again == keys[::-1]
    assert sorted(orders.to_arrow().column("id").to_pylist()) == [3, 4]
