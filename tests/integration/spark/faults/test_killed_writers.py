"""Writers killed at any step, with changes of the table before their retry: rows are exact.

Without Spark: one process does the work of the driver and of the executors.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

from airflow_provider_lancens.spark.keys.key_lookup import find_write
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from tests.integration.spark.faults.frozen_process import running_writer
from tests.integration.spark.faults.orders_table import Orders
from tests.integration.spark.faults.table_actions import ACTIONS, KEY, prepare, work_without_spark
from tests.integration.spark.faults.table_files import age, files_of, folder_of
from tests.integration.spark.faults.table_kinds import DIR, HIVE_MANAGED, HIVE_STORAGE, declare, spec_of
from tests.integration.spark.faults.write_steps import STEPS, steps_of

BEFORE = 3
"""The version before the write that is killed."""


def nothing(orders: Orders) -> None:
    """Change nothing before the retry."""


def clean_up(orders: Orders) -> None:
    """Make another write, and clean up all versions before it."""
    orders.write("later", range(100, 101))
    age(files_of(folder_of(orders.spec, orders.table)), days=30)
    clean_up_versions(orders.spec, orders.table, older_than=timedelta(0))


def clean_up_by_lance(orders: Orders) -> None:
    """The same with Lance's own clean-up."""
    orders.write("later", range(100, 101))
    folder = str(folder_of(orders.spec, orders.table))
    lance.dataset(folder).cleanup_old_versions(older_than=timedelta(0))


def restore(orders: Orders) -> None:
    """Restore the version before the write, and clean up the write's version."""
    orders.write("later", range(100, 101))
    restore_version(orders.spec, orders.table, BEFORE)
    clean_up(orders)


def compact(orders: Orders) -> None:
    ACTIONS["compact"].run(orders)


EVENTS: Mapping[str, Callable[[Orders], None]] = {
    "nothing": nothing,
    "clean-up": clean_up,
    "clean-up by Lance": clean_up_by_lance,
    "restore": restore,
    "compact": compact,
}
EVERYDAY = {
    (HIVE_MANAGED, "when-the-metastore-has-advanced", "clean-up"),
    (DIR, "before-its-key-is-confirmed", "clean-up by Lance"),
    (HIVE_STORAGE, "when-its-key-is-announced", "nothing"),
    (DIR, "before-its-staged-manifest-goes", "restore"),
}


def cases() -> list[Any]:
    every = [
        (kind, step, event)
        for kind in (DIR, HIVE_STORAGE, HIVE_MANAGED)
        for step in steps_of(kind)
        for event in EVENTS
    ]
    return [pytest.param(*case, marks=() if case in EVERYDAY else pytest.mark.long) for case in every]


@pytest.fixture
def orders(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> Orders:
    """A table with the rows 0 to 2."""
    work_without_spark(monkeypatch)
    spec = spec_of(kind, request, tmp_path)
    made = Orders(spec, declare(spec, database, kind), "append")
    prepare(made)
    return made


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "step", "event"), cases())
def test_the_retry_of_a_killed_writer_leaves_exact_rows(orders: Orders, step: str, event: str) -> None:
    with running_writer() as writer:
        writer.kill(orders.spec, orders.table, "append", step)
    committed = STEPS[step].committed
    assert orders.ids == list(range(8 if committed else 3))

    EVENTS[event](orders)
    retry = orders.write(KEY, range(3, 8))

    later = [] if event in ("nothing", "compact") else [100]
    assert orders.ids == [*range(8), *later]
    assert retry.is_done == (not committed or event == "restore")
    again = find_write(orders.spec, orders.table, KEY)
    assert again is not None
    assert (again.version, again.written) == (retry.version, 5)
