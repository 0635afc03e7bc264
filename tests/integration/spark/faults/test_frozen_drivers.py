"""Drivers suspended at any step of a write, temporarily or forever, while their retry runs.

Without Spark: the rows are written in this process, as an executor would.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidTableStateError

from airflow_provider_lancens.spark import WriteResult
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from tests.integration.managed.commit_points import Point
from tests.integration.spark.faults.orders_table import WAYS, Orders
from tests.integration.spark.faults.table_files import DAY, age, clean_up, files_needed, files_of, folder_of
from tests.integration.spark.faults.table_kinds import declare, spec_of
from tests.integration.spark.faults.write_steps import STEPS, at_each_step

SECONDS = 60


@pytest.fixture
def orders(request: pytest.FixtureRequest, tmp_path: Path, database: str, kind: str, way: str) -> Orders:
    """A table with the rows 0 to 2."""
    spec = spec_of(kind, request, tmp_path)
    made = Orders(spec, declare(spec, database, kind), way)
    made.write("december", range(3))
    return made


@contextmanager
def frozen(step: Point, write: Callable[[], WriteResult]) -> Iterator["Future[WriteResult]"]:
    """A driver that is suspended at a step of a write until the block ends."""
    arrived, wakes = Event(), Event()

    def freeze() -> None:
        arrived.set()
        wakes.wait()

    with step.interrupted_by(freeze), ThreadPoolExecutor(1) as thread:
        driver = thread.submit(write)
        try:
            assert arrived.wait(SECONDS)
            yield driver
        finally:
            wakes.set()


@pytest.mark.parametrize(("kind", "step", "way"), at_each_step(*WAYS))
def test_a_resumed_driver_finds_the_commit_of_its_retry(orders: Orders, step: str) -> None:
    point, folder = STEPS[step], folder_of(orders.spec, orders.table)
    with frozen(point, orders.bring) as driver:
        assert orders.ids == list(range(8 if point.committed else 3))

        retry = orders.bring()
        following = orders.write("february", range(8, 9))
        clean_up(orders.spec, orders.table)

        assert (retry.version, retry.is_done, following.version) == (2, not point.committed, 3)
        assert orders.ids == list(range(9))
        assert files_of(folder) == files_needed(folder)
    late = driver.result(SECONDS)
    assert (late.version, late.written, late.is_done) == (2, retry.written, point.committed)
    assert orders.ids == list(range(9))


@pytest.mark.parametrize(("kind", "way"), [("dir", "append"), ("hive-managed", "append")])
@pytest.mark.parametrize("step", ["before-any-fragment", "when-its-manifest-is-staged"])
def test_a_presumed_dead_driver_is_refused_and_its_retry_commits(orders: Orders, step: str) -> None:
    folder = folder_of(orders.spec, orders.table)
    with frozen(STEPS[step], orders.bring) as driver:
        clean_up(orders.spec, orders.table)
        assert files_of(folder) == files_needed(folder)
    refusal = driver.exception(SECONDS)

    assert isinstance(refusal, ConcurrentModificationError)
    assert "presumed this write dead" in str(refusal)
    assert orders.ids == list(range(3))
    assert orders.bring().version == 3  # the clean-up committed one to revoke the driver's lease
    assert orders.ids == list(range(8))


@pytest.mark.parametrize(("kind", "way"), [("hive-managed", "append")])
def test_a_clean_up_keeps_a_version_whose_manifest_name_a_direct_writer_took(orders: Orders) -> None:
    folder = folder_of(orders.spec, orders.table)
    with frozen(STEPS["when-the-metastore-has-advanced"], orders.bring):
        by_path = pa.table({"id": pa.array([77], pa.int64())})
        lance.write_dataset(by_path, str(folder), mode="append")

        lease = {file for file in files_of(folder) if "writes" in file.parts}
        age(files_of(folder) - lease, days=30)
        remove_orphans(orders.spec, orders.table, older_than=DAY)

        assert orders.ids == list(range(8))


@pytest.mark.parametrize(("kind", "way"), [("hive-managed", "append")])
def test_nothing_is_removed_if_a_dead_writes_lease_cannot_be_revoked(orders: Orders) -> None:
    folder = folder_of(orders.spec, orders.table)
    with frozen(STEPS["when-its-manifest-is-recorded"], orders.bring) as driver:
        by_path = pa.table({"id": pa.array([77], pa.int64())})
        lance.write_dataset(by_path, str(folder), mode="append")
        before = {file for file in files_of(folder) if file.suffix == ".lance"}

        with pytest.raises(InvalidTableStateError, match="compare"):
            clean_up(orders.spec, orders.table)

        assert {file for file in files_of(folder) if file.suffix == ".lance"} == before
    assert driver.result(SECONDS).is_done  # as the comparison reports
    assert orders.ids == list(range(8))
