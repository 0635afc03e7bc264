"""Drivers that stop at some step of a write, for long or for good, while their retry goes on.

Spark has no part in it: the rows are written in this process, as an executor would write them.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens.spark import WriteResult
from tests.integration.managed.deaths import Point
from tests.integration.spark.faults.leftovers import clean_up, files_needed, files_of, folder_of
from tests.integration.spark.faults.orders import WAYS, Orders
from tests.integration.spark.faults.steps import STEPS, at_each_step
from tests.integration.spark.faults.tables import declare, spec_of

SECONDS = 60


@pytest.fixture
def orders(request: pytest.FixtureRequest, tmp_path: Path, database: str, kind: str, way: str) -> Orders:
    """A table that has the rows 0 to 2."""
    spec = spec_of(kind, request, tmp_path)
    made = Orders(spec, declare(spec, database, kind), way)
    made.write("december", range(3))
    return made


@contextmanager
def frozen(step: Point, write: Callable[[], WriteResult]) -> Iterator["Future[WriteResult]"]:
    """A driver that stands still at a step of a write, until the block ends."""
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
def test_the_retry_makes_up_for_a_driver_that_stands_still_and_that_finds_it_when_it_goes_on(
    orders: Orders, step: str
) -> None:
    point, folder = STEPS[step], folder_of(orders.spec, orders.table)
    with frozen(point, orders.bring) as driver:
        assert orders.ids == list(range(8 if point.committed else 3))

        retry = orders.bring()
        following = orders.write("february", range(8, 9))
        clean_up(orders.spec, orders.table)

        assert (retry.version, retry.committed, following.version) == (2, not point.committed, 3)
        assert orders.ids == list(range(9))
        assert files_of(folder) == files_needed(folder)
    late = driver.result(SECONDS)
    assert (late.version, late.rows, late.committed) == (2, retry.rows, point.committed)
    assert orders.ids == list(range(9))


@pytest.mark.parametrize(("kind", "way"), [("dir", "append"), ("hive-managed", "append")])
@pytest.mark.parametrize("step", ["before-any-fragment", "when-its-manifest-is-staged"])
def test_who_is_taken_for_dead_is_refused_and_brings_it_when_it_is_run_again(
    orders: Orders, step: str
) -> None:
    folder = folder_of(orders.spec, orders.table)
    with frozen(STEPS[step], orders.bring) as driver:
        clean_up(orders.spec, orders.table)
        assert files_of(folder) == files_needed(folder)
    refusal = driver.exception(SECONDS)

    assert isinstance(refusal, ConcurrentModificationError)
    assert "took this write for dead" in str(refusal)
    assert orders.ids == list(range(3))
    assert orders.bring().version == 2
    assert orders.ids == list(range(8))


@pytest.mark.parametrize(("kind", "way"), [("hive-managed", "append")])
def test_a_clean_up_leaves_a_version_whose_name_a_writer_by_path_took(orders: Orders) -> None:
    folder = folder_of(orders.spec, orders.table)
    with frozen(STEPS["when-the-metastore-has-advanced"], orders.bring):
        by_path = pa.table({"id": pa.array([77], pa.int64())})
        lance.write_dataset(by_path, str(folder), mode="append")

        clean_up(orders.spec, orders.table)

        assert orders.ids == list(range(8))
