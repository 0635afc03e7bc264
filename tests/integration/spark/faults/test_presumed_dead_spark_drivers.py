"""Spark drivers that SIGSTOP suspends, by each way to write, and that a clean-up presumes dead."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.driver_processes import Driver, running_driver
from tests.integration.spark.faults.table_kinds import DIR, HIVE_MANAGED
from tests.integration.spark.faults.write_steps import FREEZING_STEPS, freezing_steps_of
from tests.integration.spark.faults.write_ways import WAYS
from tests.pyspark_versions import has_data_sources
from tests.support.clean_ups import CLEAN_UPS
from tests.support.writes import write_table

pytestmark = [pytest.mark.slow, pytest.mark.long]


def cases() -> list[Any]:
    return [
        pytest.param(kind, way, step, clean_up, marks=[has_data_sources] if way == "save" else [])
        for kind in (DIR, HIVE_MANAGED)
        for way in WAYS
        for step in freezing_steps_of(kind, maintains=False)
        for clean_up in CLEAN_UPS
    ]


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    with running_driver() as started:
        assert started.answer() == {"ready": True}
        yield started


@pytest.mark.parametrize(("kind", "way", "step", "clean_up"), cases())
def test_a_frozen_driver_commits_nothing_that_refers_to_removed_files(
    spark: SparkSession,
    driver: Driver,
    spec: NamespaceSpec,
    table: str,
    ids: Callable[..., list[int]],
    way: str,
    step: str,
    clean_up: str,
) -> None:
    write_table(spark.range(3), spec, table)
    committed = FREEZING_STEPS[step].committed
    with driver.frozen(spec, table, (3, 8), key="january", way=way, step=step):
        CLEAN_UPS[clean_up](spec, table)
    answer = driver.answer()

    assert ids() == list(range(8 if committed else 3))
    assert ("version" in answer) == committed
    assert committed or "presumed this write dead" in answer["message"]
    retry = WAYS[way](spark, spec, table, (3, 8), gate=None, key="january")
    assert retry.written == 5
    CLEAN_UPS[clean_up](spec, table)
    assert ids() == list(range(8))
