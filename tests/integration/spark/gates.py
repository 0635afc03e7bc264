"""Gates that a write stops at, in whichever of Spark's processes the step is done."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from airflow_provider_lancens.spark import LanceDataSource, NamespaceSpec, lance_data_source
from airflow_provider_lancens.spark.datasource.writer import LanceWriter
from tests.integration.spark.steps import STEPS


@dataclass(frozen=True)
class Gate:
    """A named pipe at a step: see `drivers.Driver`."""

    step: str
    pipe: str

    @contextmanager
    def closed(self) -> Iterator[None]:
        """The first one in this process to come to the step within the block waits to be let through."""
        with STEPS[self.step].interrupted_by(lambda: Path(self.pipe).read_bytes()):
            yield


@dataclass(frozen=True)
class GatedWriter(LanceWriter):
    """Commits with the gate closed."""

    gate: Gate

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with self.gate.closed():
            super().commit(messages)


def gated_data_source(spec: NamespaceSpec, name: str, gate: Gate) -> type[LanceDataSource]:
    """A data source whose writes are planned and committed with the gate closed."""
    bound = lance_data_source(spec, name)

    class GatedSource(bound):  # type: ignore[misc, valid-type]
        def writer(self, schema: StructType, overwrite: bool) -> GatedWriter:
            with gate.closed():
                planned = super().writer(schema, overwrite)
            return GatedWriter(**vars(planned), gate=gate)

    return GatedSource
