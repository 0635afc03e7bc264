"""Appends of one row each, in separate processes, to compare ways to commit."""

import functools
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa
from hmsclient.genthrift.hive_metastore import ttypes

from tests.benchmarks.namespace.bare_thrift import bare_client, describe
from tests.support.lakes import Lake

MANAGED = "managed"
BARE = "bare calls"
"""By path, and beside it the calls of a managed append to the metastore, bare."""
BY_PATH = "by path"


@dataclass(frozen=True)
class Target:
    """A table, and how to reach it; picklable."""

    uri: str
    root: str
    table: tuple[str, str]
    location: str
    how: str

    def append(self, row: int) -> None:
        """Commit one row."""
        arguments: dict[str, Any] = {"uri": self.location}
        if self.how == MANAGED:
            arguments = {"namespace_client": _connected(self.uri, self.root), "table_id": list(self.table)}
        lance.write_dataset(pa.table({"row": [row]}), **arguments, mode="append")
        if self.how == BARE:
            _make_the_calls_of_a_commit(_bare(self.uri), *self.table)


def append_all(target: Target, rows: int) -> None:
    """Commit this many rows, one by one."""
    for row in range(rows):
        target.append(row)


def _make_the_calls_of_a_commit(client: Any, db: str, table: str) -> None:
    catalog_table = [describe(client, db, table) for _ in range(3)][-1]
    # It doesn't change, so that several writers can make the same conditional call.
    condition = {"expected_parameter_key": "managed_by", "expected_parameter_value": "storage"}
    context = ttypes.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true", **condition})
    client.alter_table_with_environment_context(db, table, catalog_table, context)


@functools.cache
def _connected(uri: str, root: str) -> Any:
    return Lake("Hive2Namespace", {"uri": uri, "root": root}).connect()


@functools.cache
def _bare(uri: str) -> Any:
    return bare_client(uri)
