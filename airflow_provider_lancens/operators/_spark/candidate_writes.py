"""Possible writes of a task, whose default key depends on the changes that its function reads.

All are looked up before Spark is started, so that a retry finds the commit of an earlier try. The actual
write is known once the function was called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.function_inputs import WHOLE, Reading

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.options import WriteRequest
    from airflow_provider_lancens.spark.results import WriteResult
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.write_context import WriteContext


@contextmanager
def ignoring_unusable_key(candidates: Collection[object]) -> Iterator[None]:
    """Look up one of several keys, without an error if it can't be used: another one may be the task's."""
    try:
        yield
    except (spec_errors.InvalidInputError, spec_errors.InvalidTableStateError):
        if len(candidates) == 1:
            raise


@dataclass(frozen=True, slots=True)
class CandidateWrites:
    """Possible writes of a task, by the changes that its function reads."""

    target: ResolvedTable
    requests: Mapping[Reading, WriteRequest]
    begun: Mapping[Reading, WriteContext]
    """The writes whose key can be used."""

    @classmethod
    def begin(cls, target: ResolvedTable, requests: Mapping[Reading, WriteRequest]) -> Self:
        """Look up the keys.

        Raises:
            InvalidInputError: (13) the only key was committed with other data, or has expired.
            InvalidTableStateError: (19) it cannot be determined whether the only key was committed.
        """
        from airflow_provider_lancens.spark.write.write_context import WriteContext

        begun: dict[Reading, WriteContext] = {}
        opened: LanceDataset | None = None
        for reading, request in requests.items():
            with ignoring_unusable_key(requests):
                begun[reading] = WriteContext.begin(target, request, opened)
                opened = begun[reading].latest
        return cls(target, requests, begun)

    def find_earlier_commit(self) -> tuple[WriteResult, Reading] | None:
        """Return the result of an earlier run that has committed one of them, with its inputs."""
        from airflow_provider_lancens.spark.write.write_rows import find_earlier_commit

        for reading, write in self.begun.items():
            if (result := find_earlier_commit(write)) is not None:
                return result, reading
        return None

    def of(self, reading: Reading) -> WriteContext:
        """Return the write for the newest version of the table, once it is known what the function reads.

        Raises:
            InvalidInputError: (13) its key was committed with other data, or has expired.
            InvalidTableStateError: (19) it cannot be determined whether its key was committed.
        """
        from airflow_provider_lancens.spark.write.write_context import WriteContext

        candidate = reading if reading in self.requests else WHOLE
        if candidate in self.begun:
            return self.begun[candidate].at_newest()
        return WriteContext.begin(self.target, self.requests[candidate])

    def inputs_of_result(self, result: WriteResult) -> Reading:
        """Return what was read by the write that has a result."""
        keys = {request.identity.key: reading for reading, request in self.requests.items()}
        return keys.get(result.key, WHOLE)
