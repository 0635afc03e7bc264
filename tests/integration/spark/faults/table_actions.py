"""Changes of a table, made in one process as Spark's driver and executors do, without Spark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance import IndexSpec, Thresholds, compact, index
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import MaintenancePlan
from tests.integration.spark.faults.orders_table import Orders
from tests.support.indices import build_index

KEY = "january"


@dataclass(frozen=True)
class Action:
    """A change of a table with the rows 0 to 2, each in its own fragment."""

    run: Callable[[Orders], Any]
    ids: list[int]
    """The rows that the table has afterwards."""
    is_maintenance: bool = False


def _write(ids: range, **how: Any) -> Callable[[Orders], Any]:
    return lambda orders: orders.write(KEY, ids, **how)


ACTIONS: Mapping[str, Action] = {
    "append": Action(_write(range(3, 8)), list(range(8))),
    "upsert": Action(_write(range(1, 8), mode="upsert", on=["id"]), list(range(8))),
    "overwrite": Action(_write(range(5), mode="overwrite"), list(range(5))),
    "delete": Action(
        lambda orders: delete_rows(orders.spec, orders.table, "id = 1", key=KEY, execution_id="1"), [0, 2]
    ),
    "compact": Action(
        lambda orders: compact_table(_no_spark, orders.spec, orders.table), [0, 1, 2], is_maintenance=True
    ),
    "index": Action(
        lambda orders: build_index(_no_spark, orders.spec, orders.table, "id", "BTREE", name="on_id"),
        [0, 1, 2],
        is_maintenance=True,
    ),
}


def _maintain(orders: Orders) -> Any:
    plan = MaintenancePlan(
        indices=(IndexSpec("id", "BTREE", name="on_id"),),
        older_than=timedelta(0),
        thresholds=Thresholds(min_small_fragments=2),
    )
    return maintain_table(_no_spark, orders.spec, orders.table, plan)


MAINTAIN = Action(_maintain, [0, 1, 2], is_maintenance=True)
"""Compaction, an index, and the clean-up of all older versions."""


def prepare(orders: Orders) -> None:
    """Write the initial rows of every action."""
    for number in range(3):
        orders.write(f"december {number}", range(number, number + 1))


def work_without_spark(patch: pytest.MonkeyPatch) -> None:
    """Let this process do the work of executors."""
    for module in (compact, index):
        patch.setattr(module, "run_in_parallel", _in_this_process)


def _in_this_process(spark: object, pieces: Sequence[Callable[[], Any]]) -> list[Any]:
    del spark
    return [piece() for piece in pieces]


def _no_spark() -> Any:
    raise AssertionError("no Spark here")
