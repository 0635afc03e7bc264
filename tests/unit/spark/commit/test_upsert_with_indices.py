"""What an index finds is what a scan finds, after an upsert; also of columns that aren't its key."""

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.upsert import UpsertCommit, read_keys
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.indexed_rows import INDICES, NEW, OLD, found, rows_of, write_indexed


def upsert(target: ResolvedTable, rows: pa.Table, key: str) -> None:
    base = target.open_latest()
    assert base is not None
    fragments = write_fragments(rows, base, mode="append")
    keys = read_keys(target.dataset, fragments, pa.schema([rows.schema.field("id")]), None, "db$t")
    change = UpsertCommit("db$t", base.version, rows.schema, fragments, keys)
    Committer(target, KeyedWrite(key), Counts(1, 1, 1)).commit(change)


@pytest.fixture(params=[False, True], ids=["row addresses", "stable row ids"])
def indexed(request: pytest.FixtureRequest, target: ResolvedTable, index_type: str) -> ResolvedTable:
    write_indexed(target.dataset.location, index_type, stable_row_ids=request.param)
    return target


@pytest.mark.parametrize("index_type", INDICES)
def test_an_index_finds_what_an_upsert_wrote(indexed: ResolvedTable, index_type: str) -> None:
    upsert(indexed, rows_of(range(NEW), "omega", 9), "some rows that exist")
    upsert(indexed, rows_of(range(OLD, OLD + 2), "omega", 9), "only rows that are new")

    dataset = lance.dataset(indexed.dataset.location)
    replaced = [*range(NEW), OLD, OLD + 1]
    assert found(dataset, index_type, "omega", 9) == replaced
    assert found(dataset, index_type, "alpha", 0) == list(range(NEW, OLD))

    dataset.optimize.optimize_indices()
    dataset.optimize.compact_files()
    dataset = lance.dataset(indexed.dataset.location)
    assert found(dataset, index_type, "omega", 9) == replaced
    assert found(dataset, index_type, "alpha", 0) == list(range(NEW, OLD))


def test_rows_that_an_upsert_leaves_alone_keep_their_version(target: ResolvedTable) -> None:
    lance.write_dataset(rows_of(range(4), "alpha", 0), target.dataset.location, enable_stable_row_ids=True)
    upsert(target, rows_of(range(3, 5), "omega", 9), "one replaced, one new")

    versions = ["_row_created_at_version", "_row_last_updated_at_version"]
    rows = lance.dataset(target.dataset.location).to_table(["id", *versions]).sort_by("id")
    assert rows["_row_last_updated_at_version"].to_pylist() == [1, 1, 1, 2, 2]
    assert rows["_row_created_at_version"].to_pylist()[:3] == [1, 1, 1]
