"""Concurrent drivers on a standalone cluster, once each; those of `test_drivers` are in local mode."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.driver_processes import Driver, race, running_driver
from tests.integration.spark.faults.table_kinds import DIR, HIVE_MANAGED
from tests.servers.spark import SMALL
from tests.support.writes import write_table

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def drivers(cluster: str) -> Iterator[tuple[Driver, Driver]]:
    """Two drivers, each with one of the cluster's workers."""
    conf = {"spark.master": cluster, "spark.cores.max": "1", **SMALL}
    with running_driver(**conf) as one, running_driver(**conf) as other:
        assert [driver.answer() for driver in (one, other)] == [{"ready": True}] * 2
        yield one, other


@pytest.fixture(params=[DIR, HIVE_MANAGED])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    "keys", [("january", "january"), ("january", "february")], ids=["one-key", "two-keys"]
)
@pytest.mark.parametrize("way", ["append", "upsert"])
def test_rows_are_exact_after_a_race(
    spark: SparkSession,
    drivers: tuple[Driver, Driver],
    spec: NamespaceSpec,
    table: str,
    ids: Callable[..., list[int]],
    keys: tuple[str, str],
    way: str,
) -> None:
    write_table(spark.range(3), spec, table)
    one_key, rows = len(set(keys)) == 1, ((3, 8), (3, 8))
    written = [*range(3, 8)] if one_key or way == "upsert" else [*range(3, 8), *range(3, 8)]

    answers = race(drivers, spec, table, keys=keys, ids=rows, way=way)

    assert sorted(answer["version"] for answer in answers) == ([2, 2] if one_key else [2, 3])
    assert sum(answer["outcome"] == "done" for answer in answers) == (1 if one_key else 2)
    assert ids() == sorted([*range(3), *written])
    write_table(spark.range(8, 9), spec, table)
    assert ids() == sorted([*range(3), *written, 8])
