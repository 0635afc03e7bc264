"""The rows of a release set's table: the tables that belong to it, with their versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from airflow_provider_lancens import spec_errors

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.write.executor_tasks import WriteTask
    from airflow_provider_lancens.spark.write.row_sources import Written

_MOST = 100_000
"""Tables of a release set."""
SCHEMA = pa.schema([("table", pa.string()), ("version", pa.int64())])


@dataclass(frozen=True, slots=True)
class MemberRows:
    """Members of a release set, which are few: they are written in this process."""

    members: Mapping[str, int]
    """Versions by the tables' identifiers."""
    time_zone_known: ClassVar[bool] = True
    match_case: ClassVar[bool] = True

    def schema(
        self,
        storage: Mapping[str, str],  # noqa: ARG002 nothing is read
        vectors: Mapping[str, int] | None = None,  # noqa: ARG002 it has none
        table: pa.Schema | None = None,  # noqa: ARG002 its columns are fixed
    ) -> pa.Schema:
        """See `Columns.schema`."""
        return SCHEMA

    def write(self, task: WriteTask) -> Written:
        """See `Rows.write`."""
        rows = [{"table": table, "version": version} for table, version in sorted(self.members.items())]
        batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
        return [row for written in task.run(iter([batch])) for row in written.to_pylist()]


def read_members(dataset: LanceDataset, release_set: object) -> dict[str, int]:
    """Return the members of an opened version of a release set.

    Raises:
        InvalidTableStateError: (19) the table isn't a release set.
    """
    if dataset.schema.names != SCHEMA.names:
        raise spec_errors.InvalidTableStateError(
            f"table {release_set} isn't a release set: expected the columns {SCHEMA.names}, got "
            f"{dataset.schema.names}; declare a table of its own for a release set"
        )
    if (count := dataset.count_rows()) > _MOST:
        raise spec_errors.InvalidTableStateError(
            f"table {release_set} isn't a release set: it has {count} rows; allowed: {_MOST}"
        )
    rows = dataset.to_table().to_pylist()
    if any(type(row["table"]) is not str or type(row["version"]) is not int for row in rows):
        raise spec_errors.InvalidTableStateError(
            f"table {release_set} isn't a release set: another client wrote a row whose table isn't a text, "
            "or whose version isn't a number"
        )
    return {row["table"]: row["version"] for row in rows}
