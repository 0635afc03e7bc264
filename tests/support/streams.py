"""Streams of files that are written to a table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from airflow_provider_lancens.spark import NamespaceSpec, foreach_batch
from tests.support.reads import read_table


@dataclass
class Stream:
    """A query that reads a folder, one file per epoch, and writes a table."""

    spark: SparkSession
    spec: NamespaceSpec
    table: str
    folder: Path
    sink: str = "format"

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def add(self, *rows: tuple[int, float]) -> None:
        """Add a file."""
        self.files.mkdir(exist_ok=True)
        name = f"{len(list(self.files.iterdir())):05}.csv"
        path = self.folder / name
        path.write_text("".join(f"{number},{amount}\n" for number, amount in rows))
        path.rename(self.files / name)

    def frame(self, files_per_epoch: int = 1) -> DataFrame:
        self.files.mkdir(exist_ok=True)
        options = {"maxFilesPerTrigger": str(files_per_epoch)}
        return self.spark.readStream.options(**options).csv(str(self.files), schema="id long, amount double")

    def start(self, frame: DataFrame | None = None, mode: str = "append", **options: Any) -> StreamingQuery:
        """Start a query that ends with the files that are there."""
        writer = (self.frame() if frame is None else frame).writeStream.outputMode(mode)
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        if self.sink == "format":
            return writer.format("lake").option("table", self.table).options(**options).start()
        if mode == "complete":
            options["mode"] = "overwrite"
        elif "on" in options:
            options |= {"mode": "upsert", "on": [options["on"]]}
        return writer.foreachBatch(foreach_batch(self.spec, self.table, **options)).start()

    def run(self, *arguments: Any, **options: Any) -> None:
        self.start(*arguments, **options).awaitTermination()

    def forget(self, after: int, *, offsets: bool = False) -> None:
        """Take the checkpoint back to when this epoch was the last that Spark knew to be done."""
        for log in ("commits", "offsets") if offsets else ("commits",):
            for path in (self.checkpoint / log).iterdir():
                name = path.name.strip(".").removesuffix(".crc")
                if name.isdecimal() and int(name) > after:
                    path.unlink()
        # What the source has seen, which it finds again.
        if offsets:
            for path in (self.checkpoint / "sources" / "0").iterdir():
                name = path.name.strip(".").removesuffix(".crc")
                if name.isdecimal() and int(name) > after:
                    path.unlink()

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in read_table(self.spark, self.spec, self.table).collect())
