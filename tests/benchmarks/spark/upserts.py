"""Upserts compared with MERGE by Delta Lake and Apache Iceberg; run by `test_upserts.py`.

Arguments: the jars, separated by commas, a folder, the rows of a table, and the number of rounds. Prints the
seconds of each candidate as JSON. In a separate process, since jars belong to the JVM from its start.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from lance_namespace import DeclareTableRequest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.session import spark_session
from tests.benchmarks.timing import Measure, interleaved, timed
from tests.support.writes import write_table

SHARE = 100
"""One row in so many is upserted; a tenth of these are new."""
STEP = 7919
"""The upserted keys are spread over the whole table: it is prime to any number of rows in use."""
COLUMNS = (
    "id",
    "id % 100000 AS customer",
    "id * 0.01D AS amount",
    "date_add(DATE '2020-01-01', CAST(id % 2000 AS INT)) AS day",
    "concat('order ', id, ' of ', id % 100000) AS note",
)
UPDATE = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
FORMATS = {
    "delta, rewriting files": {"delta.enableDeletionVectors": "false"},
    "delta, deletion vectors": {"delta.enableDeletionVectors": "true"},
    "iceberg, rewriting files": {"format-version": "2", "write.merge.mode": "copy-on-write"},
    "iceberg, merging on read": {"format-version": "2", "write.merge.mode": "merge-on-read"},
}
"""The table properties of the peers, each in its default and in its way for frequent changes."""


def settings(jars: str, folder: Path) -> dict[str, str]:
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "8",
        "spark.jars": jars,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": str(folder / "iceberg"),
    }


@dataclass(frozen=True)
class Upserts:
    """The same table in each format, and the same rows upserted into each."""

    spark: SparkSession
    folder: Path
    rows: int

    def candidates(self) -> dict[str, Measure]:
        found = {"upsert": self._upserts()}
        for kind, properties in FORMATS.items():
            found[kind] = self._merges(kind, properties)
        return found

    def changes(self, turn: int) -> DataFrame:
        """One row in `SHARE`, at keys that are spread over the table, and that differ from turn to turn."""
        changed = self.rows // SHARE
        new = changed // 10
        old = f"((id + {turn * changed}) * {STEP}) % {self.rows}"
        key = f"CASE WHEN id < {new} THEN {self.rows + turn * new} + id ELSE {old} END AS id"
        return self.spark.range(changed).selectExpr(key).selectExpr(*COLUMNS)

    def _table(self) -> DataFrame:
        return self.spark.range(self.rows).selectExpr(*COLUMNS)

    def _upserts(self) -> Measure:
        spec = NamespaceSpec("dir", {"root": str(self.folder / "lance")})
        spec.connect().declare_table(DeclareTableRequest(id=["orders"]))
        write_table(self._table(), spec, "orders", mode="create")
        return self._in_turns(lambda rows: write_table(rows, spec, "orders", mode="upsert", on=["id"]))

    def _merges(self, kind: str, properties: dict[str, str]) -> Measure:
        provider, _, _ = kind.partition(",")
        catalog = "iceberg.orders" if provider == "iceberg" else "default"
        name = f"{catalog}.{''.join(letter for letter in kind if letter.isalpha())}"
        writer = self._table().writeTo(name).using(provider)
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        writer.create()

        def merge(rows: DataFrame) -> object:
            rows.createOrReplaceTempView("changes")
            return self.spark.sql(f"MERGE INTO {name} t USING changes s ON t.id = s.id {UPDATE}").collect()

        measure = self._in_turns(merge)
        assert self.spark.table(name).count() == self.rows
        return measure

    def _in_turns(self, write: Callable[[DataFrame], object]) -> Measure:
        turns = count()
        return timed(lambda: write(self.changes(next(turns))))


def main() -> None:
    jars, folder, rows, rounds = sys.argv[1:]
    with spark_session("benchmark", settings(jars, Path(folder))) as spark:
        spark.sparkContext.setLogLevel("OFF")
        times = interleaved(int(rounds), Upserts(spark, Path(folder), int(rows)).candidates(), warm_up=1)
    sys.stdout.write(json.dumps(times.rounds) + "\n")


if __name__ == "__main__":
    main()
