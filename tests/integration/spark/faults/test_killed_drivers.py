"""Spark drivers killed at any step of a write; in `test_frozen_drivers` they are suspended."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.driver_processes import running_driver
from tests.integration.spark.faults.table_files import clean_up, files_needed, files_of, folder_of
from tests.integration.spark.faults.table_kinds import DIR, HIVE_MANAGED
from tests.integration.spark.faults.write_steps import STEPS, steps_of
from tests.integration.spark.faults.write_ways import WAYS
from tests.pyspark_versions import has_data_sources
from tests.support.writes import write_table

pytestmark = pytest.mark.slow

OF_THE_TASK = {"key": "january", "execution_id": "1"}
"""Identifies each try of the write."""
EVERYDAY = (HIVE_MANAGED, "when-its-manifest-is-recorded", "append")
"""In the middle of a commit; in `test_frozen_drivers` a driver stops for good at each step."""
THOROUGH = (DIR, "before-its-key-is-confirmed", "save")
"""After the commit."""


def deaths() -> list[Any]:
    every = [(kind, step, way) for kind in (DIR, HIVE_MANAGED) for step in steps_of(kind) for way in WAYS]
    return [pytest.param(*one, marks=list(marks_of(one))) for one in every]


def marks_of(death: tuple[str, str, str]) -> Iterator[pytest.MarkDecorator]:
    if death != EVERYDAY:
        yield pytest.mark.thorough if death == THOROUGH else pytest.mark.long
    if death[2] == "save":
        yield has_data_sources


@pytest.mark.parametrize(("kind", "step", "way"), deaths())
def test_the_retry_of_a_killed_driver_leaves_exact_rows_and_a_clean_up_removes_its_files(
    spark: SparkSession,
    spec: NamespaceSpec,
    table: str,
    ids: Callable[..., list[int]],
    step: str,
    way: str,
) -> None:
    write_table(spark.range(3), spec, table)
    with running_driver() as driver:
        assert driver.answer() == {"ready": True}
        driver.start_writing(spec, table, (3, 8), way=way, step=step, **OF_THE_TASK)
        driver.arrive()
        driver.kill()
    committed = STEPS[step].committed
    assert ids() == list(range(8 if committed else 3))

    retry = WAYS[way](spark, spec, table, (3, 8), gate=None, **OF_THE_TASK)
    following = write_table(spark.range(8, 9), spec, table)
    clean_up(spec, table)

    assert (retry.version, retry.written, following.version) == (2, 5, 3)
    assert ids() == list(range(9))
    folder = folder_of(spec, table)
    assert files_of(folder) == files_needed(folder)
