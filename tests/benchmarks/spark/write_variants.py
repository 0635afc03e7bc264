"""Variants of writing Parquet files into a table, each timed from its start to its commit."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import lance
import pyarrow.dataset as ds
from lance_namespace import DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, TableLayout
from tests.benchmarks.timing import Measure
from tests.support.writes import write_files, write_table

COMPARED = (("direct", "parquet"), ("frame", "parquet"), ("direct", "pylance"))
"""The ratios that the documentation states."""
Work = Callable[[str], object]
"""Writes into the folder of this name."""


@dataclass(frozen=True)
class Ways:
    """Ways to write the same rows; removing them isn't timed."""

    spark: SparkSession
    source: Path
    folder: Path
    vectors: dict[str, int] = field(default_factory=dict)
    _numbers: count = field(default_factory=count)

    @property
    def spec(self) -> NamespaceSpec:
        return NamespaceSpec("dir", {"root": str(self.folder)})

    def all(self) -> dict[str, Measure]:
        works: dict[str, Work] = {
            "direct": self.direct,
            "frame": self.frame,
            "parquet": self.parquet,
            "pylance": self.pylance,
        }
        return {name: self.measured(work) for name, work in works.items()}

    def measured(self, work: Work) -> Measure:
        def measure() -> float:
            name = f"t{next(self._numbers)}"
            self.spec.connect().declare_table(DeclareTableRequest(id=[name]))
            started = time.perf_counter()
            work(name)
            took = time.perf_counter() - started
            shutil.rmtree(self.folder)
            return took

        return measure

    def direct(self, name: str, tasks: int | None = None) -> None:
        source = FileSource("parquet", str(self.source), tasks=tasks)
        write_files(self.spark, source, self.spec, name, options=TableLayout(vector_columns=self.vectors))

    def frame(self, name: str, tasks: int | None = None) -> None:
        df = self._rows(tasks)
        write_table(df, self.spec, name, options=TableLayout(vector_columns=self.vectors))

    def parquet(self, name: str, tasks: int | None = None) -> None:
        self._rows(tasks).write.parquet(str(self.folder / f"{name}.parquet"))

    def _rows(self, tasks: int | None) -> DataFrame:
        df = self.spark.read.parquet(str(self.source))
        return df.coalesce(tasks) if tasks else df

    def pylance(self, name: str) -> None:
        """One process without Spark, with all its cores."""
        reader = ds.dataset(self.source, format="parquet").scanner().to_reader()
        lance.write_dataset(reader, str(self.folder / f"{name}.single"))
