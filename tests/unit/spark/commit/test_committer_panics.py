"""A panic of Lance's native code is an error like others: it says what was tried, and the write's lease ends.

Pylance panics where an update claims that an index covers the new rows, which this package's own never do.
"""

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments
from lance_namespace.errors import InternalError

from airflow_provider_lancens.namespace.storage.write_leases import leases_of
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.table_change import CommitStep, TableChange
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})


class Panicking(TableChange):
    """A change on which Lance panics when it is committed."""

    __slots__ = ()

    def apply_to(self, latest: lance.LanceDataset | None) -> CommitStep:
        operation = LanceOperation.Update(
            new_fragments=list(self.fragments), fields_modified=[], update_mode="rewrite_rows"
        )
        return CommitStep(operation, 0 if latest is None else latest.version)


@pytest.fixture
def indexed(target: ResolvedTable) -> ResolvedTable:
    """A table with stable row ids, and a bitmap index of two segments."""
    location = target.dataset.location
    lance.write_dataset(ROWS, location, enable_stable_row_ids=True)
    lance.dataset(location).create_scalar_index("s", "BITMAP")
    lance.write_dataset(ROWS, location, mode="append")
    lance.dataset(location).optimize.optimize_indices(num_indices_to_merge=0)
    return target


def test_a_panic_commits_nothing_and_ends_the_lease(indexed: ResolvedTable) -> None:
    base = indexed.open_latest()
    assert base is not None
    change = Panicking("db$orders", base.version, ROWS.schema, write_fragments(ROWS, base, mode="append"))

    with (
        pytest.raises(InternalError, match=r"table db\$orders: nothing was committed: .*panic.*implemented"),
        storage_failures(indexed.dataset.location, {}),
        acquire_lease(indexed.dataset).kept_alive(end=True) as lease,
    ):
        Committer(indexed, KeyedWrite("k"), Counts(2, 1, 1), lease=lease).commit(change)

    assert indexed.latest_version() == base.version
    assert not leases_of(indexed.dataset.manifests)


def test_a_panic_in_any_other_call_is_told_with_the_location(indexed: ResolvedTable) -> None:
    base = indexed.open_latest()
    assert base is not None
    change = Panicking("db$orders", base.version, ROWS.schema, write_fragments(ROWS, base, mode="append"))

    with (
        pytest.raises(InternalError, match=r"orders\.lance: Lance's native code failed with a panic"),
        storage_failures(indexed.dataset.location, {}),
    ):
        lance.LanceDataset.commit(base, change.apply_to(base).operation, read_version=base.version)
