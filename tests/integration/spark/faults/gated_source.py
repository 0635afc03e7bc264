"""A data source that waits at a gate in the processes where Spark plans and commits writes."""

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from airflow_provider_lancens.spark import LanceDataSource, NamespaceSpec, lance_data_source
from airflow_provider_lancens.spark.datasource.batch_source import LanceWriter
from tests.integration.spark.faults.step_gates import Stop


@dataclass(frozen=True)
class GatedWriter(LanceWriter):
    """Commits with the gate closed."""

    gate: Stop

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with self.gate.closed():
            super().commit(messages)


def gated_data_source(spec: NamespaceSpec, name: str, gate: Stop) -> type[LanceDataSource]:
    """A data source whose writes are planned and committed with the gate closed."""
    bound = lance_data_source(spec, name)

    class GatedSource(bound):  # type: ignore[misc, valid-type]
        def writer(self, schema: StructType, overwrite: bool) -> GatedWriter:
            with gate.closed():
                planned = super().writer(schema, overwrite)
            return GatedWriter(**vars(planned), gate=gate)

    return GatedSource
