"""Histories of random steps by this package and by other clients, checked against a plain model.

Fixed seeds in each run, thousands in `long` ones; ``python -m tests.histories`` runs any others.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from tests.histories.history import MakeTable, draw, run, shortened
from tests.histories.table import Table
from tests.support.spark_sessions import spark

__all__ = ["spark"]

STEPS = 20
_PER_TEST = 50


def play(make: MakeTable, seeds: range, steps: int = STEPS) -> Counter[str]:
    """Run histories, and fail with the fewest steps of the first that does; return what was done."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        drawn = draw(seed, steps)
        outcome = run(make, seed, drawn)
        if outcome.problem is not None:
            pytest.fail(str(shortened(make, seed, drawn)), pytrace=False)
        counts += outcome.counts
    return counts


@pytest.fixture
def on_hive(metastore: MetastoreServer, database: str) -> MakeTable:
    """Declare managed tables on Hive Metastore."""
    return _on_hive(metastore, database)


def _on_hive(metastore: MetastoreServer, database: str, session: Any = None) -> MakeTable:
    names: Iterator[str] = (f"{database}_{number}" for number in itertools.count())
    return lambda folder: Table.on_hive(folder, metastore.uri, next(names), session)


def test_each_step_of_a_history_leaves_the_rows_changes_and_indices_that_the_model_has() -> None:
    counts = play(Table.stored, range(2), 15)
    assert counts["changes"] > 10
    assert counts["values"] > 10


@pytest.mark.thorough
def test_histories_of_storage_managed_tables_are_those_of_the_model() -> None:
    counts = play(Table.stored, range(216, 222))
    assert min(counts["changes"], counts["values"], counts["indices"]) > 20
    assert counts["publish"] > 2


@pytest.mark.thorough
def test_histories_of_managed_tables_are_those_of_the_model(on_hive: MakeTable) -> None:
    counts = play(on_hive, range(219, 221))
    assert counts["changes"] > 5
    assert counts["publish"] > 0


@pytest.mark.thorough
def test_histories_on_spark_are_those_of_the_model(spark: SparkSession) -> None:
    counts = play(lambda folder: Table.stored(folder, spark), range(430, 431))
    assert min(counts["upsert_compared"], counts["publish"]) > 0


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("start", range(10_000, 12_000, _PER_TEST))
def test_thousands_of_histories_of_storage_managed_tables(start: int) -> None:
    play(Table.stored, range(start, start + _PER_TEST))


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("start", range(20_000, 21_000, _PER_TEST))
def test_thousands_of_histories_of_managed_tables(on_hive: MakeTable, start: int) -> None:
    play(on_hive, range(start, start + _PER_TEST))


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("start", range(30_000, 30_200, _PER_TEST))
@pytest.mark.parametrize("kind", ["stored", "hive"])
def test_hundreds_of_histories_on_spark(
    spark: SparkSession, metastore: MetastoreServer, database: str, start: int, kind: str
) -> None:
    on_spark: dict[str, MakeTable] = {
        "stored": lambda folder: Table.stored(folder, spark),
        "hive": _on_hive(metastore, database, spark),
    }
    play(on_spark[kind], range(start, start + _PER_TEST))
