"""Spark drivers killed between the commit of a table's new columns and that of the rows."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.driver_processes import running_driver
from tests.integration.spark.faults.table_files import clean_up, files_needed, files_of, folder_of
from tests.integration.spark.faults.table_kinds import DIR, HIVE_MANAGED
from tests.integration.spark.faults.write_steps import BEFORE_THE_COMMIT
from tests.integration.spark.faults.write_ways import WAYS
from tests.pyspark_versions import has_data_sources
from tests.support.reads import read_table
from tests.support.writes import write_table

# Each change runs test_killed_drivers.
OF_THE_TASK: dict[str, Any] = {"key": "january", "execution_id": "1", "schema_mode": "merge"}
"""Arguments of each try of the write."""

pytestmark = pytest.mark.slow


def deaths() -> Iterator[Any]:
    for kind in (HIVE_MANAGED, DIR):
        for way in ("append", "copy", "save"):
            tier = pytest.mark.thorough if (kind, way) == (DIR, "append") else pytest.mark.long
            yield pytest.param(kind, way, marks=[tier, has_data_sources] if way == "save" else tier)


@pytest.mark.parametrize(("kind", "way"), [*deaths()])
def test_the_retry_finds_the_columns_and_writes_the_rows_once(
    spark: SparkSession, spec: NamespaceSpec, table: str, way: str
) -> None:
    write_table(spark.sql("SELECT 'b' AS name"), spec, table)
    with running_driver() as driver:
        assert driver.answer() == {"ready": True}
        driver.start_writing(spec, table, (3, 5), way=way, step=BEFORE_THE_COMMIT, **OF_THE_TASK)
        driver.arrive()
        driver.kill()
    interrupted = read_table(spark, spec, table).collect()

    results = [WAYS[way](spark, spec, table, (3, 5), gate=None, **OF_THE_TASK) for _ in range(2)]
    clean_up(spec, table)

    assert [tuple(row) for row in interrupted] == [("b", None)]
    assert [result.version for result in results] == [3, 3]
    found = read_table(spark, spec, table).collect()
    assert sorted(map(tuple, found), key=str) == [("b", None), (None, 3), (None, 4)]
    folder = folder_of(spec, table)
    assert files_of(folder) == files_needed(folder)
