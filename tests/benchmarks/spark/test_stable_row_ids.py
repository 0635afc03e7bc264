"""What stable row ids cost: the same steps on tables with and without them.

They aren't the default for tables that this package makes, since Lance keeps the ids of all rows in each
manifest: few bytes for rows in the order in which they were inserted, but about half a byte a row once rows
were replaced and compacted, in every commit.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lance_namespace import DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, TableLayout
from airflow_provider_lancens.spark.commit.delete import delete_rows
from airflow_provider_lancens.spark.maintenance.compact import compact_table
from tests.benchmarks.timing import Times
from tests.support.benchmark_sizes import ROUNDS, SCALE
from tests.support.reads import read_table
from tests.support.writes import write_table

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

ROWS = int(5_000_000 * SCALE)
KINDS = {"stable": True, "plain": False}
ONE_PERCENT = "store IN (50, 150, 250, 350, 450, 550, 650, 750, 850, 950)"
SMALL_BYTES = 10_000
"""A manifest that holds no ids one by one."""


class Steps:
    """The steps of a table's life, timed for each kind of table in turn."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self._spark, self._root = spark, root
        self._seconds: dict[str, dict[str, list[float]]] = {}
        self.manifests: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
        """By kind of table and step, the bytes of the manifest that the step made."""

    def run(self, kind: str) -> None:
        folder = self._root / kind
        spec = NamespaceSpec("dir", {"root": str(folder)})
        spec.connect().declare_table(DeclareTableRequest(id=["t"]))
        options = TableLayout(stable_row_ids=KINDS[kind])
        steps: dict[str, Callable[[], object]] = {
            "write": lambda: write_table(self._rows(), spec, "t", options=options),
            "append a row": lambda: write_table(self._rows().limit(1), spec, "t"),
            "upsert 1%": lambda: write_table(self._rows(100), spec, "t", mode="upsert", on=["id"]),
            "delete 1%": lambda: delete_rows(spec, "t", ONE_PERCENT),
            "read": lambda: _consume(read_table(self._spark, spec, "t")),
            "compact": lambda: compact_table(self._spark, spec, "t"),
            "read compacted": lambda: _consume(read_table(self._spark, spec, "t")),
        }
        for name, step in steps.items():
            with self._timed(kind, name):
                step()
            newest = min((folder / "t.lance" / "_versions").glob("*.manifest"))  # the names count down
            self.manifests[kind][name] = newest.stat().st_size
        shutil.rmtree(folder)

    def forget(self) -> None:
        """Leave out what was measured so far, as a warm-up."""
        self._seconds.clear()

    def times(self) -> dict[str, Times]:
        return {name: Times(rounds) for name, rounds in self._seconds.items()}

    def _rows(self, step: int = 1) -> DataFrame:
        return self._spark.range(0, ROWS, step, 4).selectExpr(
            "id", "cast(id % 1000 AS int) AS store", "rand(7) AS amount", "cast(id * 31 AS string) AS code"
        )

    @contextmanager
    def _timed(self, kind: str, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        took = time.perf_counter() - started
        self._seconds.setdefault(name, {kind: [] for kind in KINDS})[kind].append(took)


def test_stable_row_ids_cost_little_until_rows_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    steps = Steps(spark, tmp_path)
    for number in range(ROUNDS + 1):
        for kind in sorted(KINDS, reverse=number % 2 == 1):
            steps.run(kind)
        if not number:
            steps.forget()

    stable, plain = steps.manifests["stable"], steps.manifests["plain"]
    for name, times in steps.times().items():
        print(  # noqa: T201 for the one who measures
            f"\n{name}: {times.median('stable'):.3f} s with, {times.median('plain'):.3f} s without, ratio "
            f"{times.ratio('stable', 'plain'):.2f}; manifest of {stable[name]:,} and {plain[name]:,} bytes",
            end="",
        )
    assert max(stable["append a row"], *plain.values()) <= SMALL_BYTES
    # Once this fails, since Lance stores the ids elsewhere, they can be the default.
    assert ROWS / 16 <= stable["compact"] <= ROWS


def _consume(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
