"""What the package uses of a Spark session to run tasks, in this process: a job costs what its tasks cost.

Histories are thousands of small jobs. The commits, tasks and reads are those of users; only what runs in
Spark's own SQL needs a real session, which some of the histories have.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from airflow_provider_lancens.spark.types import spark_schema

Run = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

ZONE = "spark.sql.session.timeZone"
_CONF = {
    ZONE: "UTC",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**20),  # not unset, so that no filler is added
}


@dataclass(frozen=True)
class LocalSession:
    """A session that runs each task where it is called."""

    conf: Any = field(default_factory=lambda: SimpleNamespace(get=_CONF.get))
    sparkContext: Any = field(default_factory=lambda: SimpleNamespace(defaultParallelism=2))  # noqa: N815 Spark's name

    @classmethod
    def in_zone(cls, zone: str) -> "LocalSession":
        """Return a session with a time zone."""
        return cls(conf=SimpleNamespace(get={**_CONF, ZONE: zone}.get))

    def __call__(self, target: Any = None) -> Any:
        """Return itself, as a function that starts a session does, or a thread's target as it is."""
        return self if target is None else target

    def range(self, start: int, end: int, step: int, tasks: int) -> "LocalFrame":
        """Return numbers, in as many partitions."""
        numbers = range(start, end, step)
        size = max(1, -(-len(numbers) // tasks))
        parts = [numbers[first : first + size] for first in range(0, len(numbers), size)]
        return LocalFrame(self, [pa.table({"id": pa.array(part, pa.int64())}) for part in parts])

    def createDataFrame(self, rows: Any, schema: Any) -> "LocalFrame":  # noqa: N802 Spark's
        """Return no rows."""
        assert not rows
        return LocalFrame(self, [])


@dataclass(frozen=True)
class LocalFrame:
    """Rows in partitions, and what is to be done with them."""

    sparkSession: LocalSession  # noqa: N815 Spark's name
    parts: list[pa.Table]
    run: Run | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.parts[0].column_names)

    @property
    def schema(self) -> Any:
        """The columns as Spark has them."""
        return spark_schema(self.parts[0].schema)

    def mapInArrow(self, run: Run, schema: Any) -> "LocalFrame":  # noqa: N802 Spark's
        """Return the results of a task, which is pickled as it is for executors."""
        return LocalFrame(self.sparkSession, self.parts, cloudpickle.loads(cloudpickle.dumps(run)))

    def collect(self) -> list[dict[str, Any]]:
        """Run the task on each partition."""
        assert self.run is not None or not self.parts
        return [
            row
            for part in self.parts
            for batch in self.run(iter(part.to_batches()))
            for row in batch.to_pylist()
        ]
