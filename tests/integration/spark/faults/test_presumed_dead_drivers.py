"""Drivers that SIGSTOP suspends, that a clean-up presumes dead, and that resume.

Without Spark: one process does the work of the driver and of the executors.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import ErrorCode

from tests.integration.spark.faults.frozen_process import Writer, running_writer
from tests.integration.spark.faults.orders_table import Orders
from tests.integration.spark.faults.table_actions import ACTIONS, Action, prepare, work_without_spark
from tests.integration.spark.faults.table_kinds import (
    DIR,
    GLUE_MANAGED,
    GLUE_STORAGE,
    HIVE_MANAGED,
    HIVE_STORAGE,
    declare,
    spec_of,
)
from tests.integration.spark.faults.write_steps import (
    AFTER_THE_LEASE_CHECK,
    FREEZING_STEPS,
    freezing_steps_of,
)
from tests.support.clean_ups import CLEAN_UPS

EVERYDAY = {
    (HIVE_MANAGED, "append", AFTER_THE_LEASE_CHECK, "orphans"),
    (DIR, "append", "when-its-staged-manifest-is-read", "versions"),
    (DIR, "append", "before-its-key-is-confirmed", "versions"),
    (DIR, "compact", AFTER_THE_LEASE_CHECK, "orphans"),
    (GLUE_MANAGED, "upsert", AFTER_THE_LEASE_CHECK, "orphans"),
    (GLUE_STORAGE, "append", AFTER_THE_LEASE_CHECK, "versions"),
}


def cases() -> list[Any]:
    every = [
        (kind, action, step, clean_up)
        for kind in (DIR, HIVE_STORAGE, HIVE_MANAGED, GLUE_STORAGE, GLUE_MANAGED)
        for action in ACTIONS
        for step in freezing_steps_of(kind, maintains=ACTIONS[action].is_maintenance)
        for clean_up in CLEAN_UPS
    ]
    return [pytest.param(*case, marks=() if case in EVERYDAY else pytest.mark.long) for case in every]


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    with running_writer() as process:
        yield process


@pytest.fixture
def orders(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    database: str,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Orders:
    """A table with the rows 0 to 2."""
    work_without_spark(monkeypatch)
    spec = spec_of(kind, request, tmp_path)
    made = Orders(spec, declare(spec, database, kind), "append")
    prepare(made)
    return made


@pytest.mark.parametrize(("kind", "action", "step", "clean_up"), cases())
def test_a_frozen_driver_commits_nothing_that_refers_to_removed_files(
    orders: Orders, writer: Writer, action: str, step: str, clean_up: str
) -> None:
    done: Action = ACTIONS[action]
    committed = FREEZING_STEPS[step].committed
    with writer.frozen(orders.spec, orders.table, action, step):
        CLEAN_UPS[clean_up](orders.spec, orders.table)
    answer = writer.answer()

    assert orders.ids == (done.ids if committed else [0, 1, 2])
    if committed:
        assert "version" in answer
    else:
        assert answer.get("code") == ErrorCode.CONCURRENT_MODIFICATION, answer
        assert "run it again" in answer["message"]
    retry = done.run(orders)
    assert retry.is_done != committed
    assert orders.ids == done.ids
    for _ in range(2):
        CLEAN_UPS[clean_up](orders.spec, orders.table)
        assert orders.ids == done.ids
