"""`maintain_table` killed at any step: no row is lost, and the next run does what is left.

Without Spark: one process does the work of the driver and of the executors.
"""

from pathlib import Path
from typing import Any

import lance
import pytest

from tests.integration.spark.faults.frozen_process import running_writer
from tests.integration.spark.faults.maintenance_steps import MAINTENANCE_STEPS
from tests.integration.spark.faults.orders_table import Orders
from tests.integration.spark.faults.table_actions import MAINTAIN, prepare, work_without_spark
from tests.integration.spark.faults.table_files import clean_up, folder_of
from tests.integration.spark.faults.table_kinds import DIR, HIVE_MANAGED, declare, spec_of

pytestmark = pytest.mark.slow

EVERYDAY = {(HIVE_MANAGED, "when-the-compaction-is-committed"), (DIR, "before-versions-are-removed")}


def cases() -> list[Any]:
    every = [(kind, step) for kind in (DIR, HIVE_MANAGED) for step in MAINTENANCE_STEPS]
    return [pytest.param(*case, marks=() if case in EVERYDAY else pytest.mark.long) for case in every]


@pytest.mark.parametrize(("kind", "step"), cases())
def test_the_run_after_a_killed_maintenance_completes_it(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    step: str,
) -> None:
    work_without_spark(monkeypatch)
    spec = spec_of(kind, request, tmp_path)
    orders = Orders(spec, declare(spec, database, kind), "append")
    prepare(orders)
    with running_writer() as writer:
        writer.kill(spec, orders.table, "maintain", step)
    folder = folder_of(spec, orders.table)
    killed = lance.dataset(str(folder))
    assert orders.ids == [0, 1, 2]
    assert len(killed.get_fragments()) == (1 if MAINTENANCE_STEPS[step].committed else 3)

    MAINTAIN.run(orders)

    table = lance.dataset(str(folder))
    assert orders.ids == [0, 1, 2]
    assert len(table.get_fragments()) == 1
    assert "ScalarIndexQuery" in table.scanner(filter="id = 1").explain_plan()
    assert table.stats.index_stats("on_id")["num_unindexed_rows"] == 0
    assert [kept["version"] for kept in table.version_refs()] == [table.version]
    assert not orders.write("december 0", range(1)).is_done
    clean_up(spec, orders.table)
    assert _referenced(table) == {
        path.name for part in ("data", "_indices") for path in (folder / part).iterdir()
    }


def _referenced(table: lance.LanceDataset) -> set[str]:
    """The names of the data files and of the index folders that the newest version refers to."""
    files = {file.path for fragment in table.get_fragments() for file in fragment.data_files()}
    return files | {str(segment.uuid) for found in table.describe_indices() for segment in found.segments}
