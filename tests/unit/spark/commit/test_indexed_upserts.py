"""What an index finds is what a scan finds, after an upsert; also of columns that aren't its key."""

from collections.abc import Mapping
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance.query import MatchQuery

from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.upsert import Upsert, read_keys
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

_INDICES: dict[str, Mapping[str, Any]] = {
    "BTREE": {},
    "BITMAP": {},
    "ZONEMAP": {},
    "BLOOMFILTER": {},
    "NGRAM": {},
    "INVERTED": {"with_position": False},
    "LABEL_LIST": {},
    "IVF_FLAT": {"num_partitions": 1},
    "IVF_PQ": {"num_partitions": 1, "num_sub_vectors": 1},
}
_OLD, _NEW = 600, 20


def rows_of(ids: range, word: str, place: float) -> pa.Table:
    """Rows whose text, list and vector show which write they are of."""
    size = len(ids)
    values = [place + one / 10_000 for one in ids for _ in range(2)]
    vector = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), 2)
    return pa.table({"id": list(ids), "s": [word] * size, "tags": [[word]] * size, "vector": vector})


def upsert(target: ResolvedTable, rows: pa.Table, key: str) -> None:
    base = target.open_latest()
    assert base is not None
    fragments = write_fragments(rows, base, mode="append")
    keys = read_keys(target.dataset, fragments, pa.schema([rows.schema.field("id")]), None, "db$t")
    change = Upsert("db$t", base.version, rows.schema, fragments, keys)
    Committer(target, KeyedWrite(key), Counts(1, 1, 1)).commit(change)


def found(dataset: lance.LanceDataset, index_type: str, word: str, place: float) -> list[int]:
    """The ids of the rows that a query finds through the index."""
    if index_type == "INVERTED":
        rows = dataset.to_table(["id"], full_text_query=MatchQuery(word, "s"))
    elif index_type == "LABEL_LIST":
        rows = dataset.to_table(["id"], filter=f"array_has_any(tags, ['{word}'])")
    elif index_type.startswith("IVF"):
        nearest = {"column": "vector", "q": [place, place], "k": dataset.count_rows(), "refine_factor": 2}
        rows = dataset.to_table(["id", "_distance"], nearest=nearest)
        rows = rows.filter(pa.compute.less(rows["_distance"], 1))
    elif index_type == "NGRAM":
        rows = dataset.to_table(["id"], filter=f"contains(s, '{word}')")
    else:
        rows = dataset.to_table(["id"], filter=f"s = '{word}'")
    return sorted(rows["id"].to_pylist())


@pytest.fixture(params=[False, True], ids=["row addresses", "stable row ids"])
def indexed(request: pytest.FixtureRequest, target: ResolvedTable, index_type: str) -> ResolvedTable:
    """A table of several fragments, with an index of two segments."""
    location = target.dataset.location
    lance.write_dataset(
        rows_of(range(_OLD // 2), "alpha", 0),
        location,
        max_rows_per_file=_OLD // 4,
        enable_stable_row_ids=request.param,
    )
    column = {"LABEL_LIST": "tags"}.get(index_type, "vector" if index_type.startswith("IVF") else "s")
    dataset = lance.dataset(location)
    make = dataset.create_index if index_type.startswith("IVF") else dataset.create_scalar_index
    make(column, index_type, **_INDICES[index_type])
    lance.write_dataset(rows_of(range(_OLD // 2, _OLD), "alpha", 0), location, mode="append")
    lance.dataset(location).optimize.optimize_indices(num_indices_to_merge=0)
    return target


@pytest.mark.parametrize("index_type", _INDICES)
def test_an_index_finds_what_an_upsert_wrote(indexed: ResolvedTable, index_type: str) -> None:
    upsert(indexed, rows_of(range(_NEW), "omega", 9), "some rows that exist")
    upsert(indexed, rows_of(range(_OLD, _OLD + 2), "omega", 9), "only rows that are new")

    dataset = lance.dataset(indexed.dataset.location)
    replaced = [*range(_NEW), _OLD, _OLD + 1]
    assert found(dataset, index_type, "omega", 9) == replaced
    assert found(dataset, index_type, "alpha", 0) == list(range(_NEW, _OLD))

    dataset.optimize.optimize_indices()
    dataset.optimize.compact_files()
    dataset = lance.dataset(indexed.dataset.location)
    assert found(dataset, index_type, "omega", 9) == replaced
    assert found(dataset, index_type, "alpha", 0) == list(range(_NEW, _OLD))


def test_rows_that_an_upsert_leaves_alone_keep_their_version(target: ResolvedTable) -> None:
    lance.write_dataset(rows_of(range(4), "alpha", 0), target.dataset.location, enable_stable_row_ids=True)
    upsert(target, rows_of(range(3, 5), "omega", 9), "one replaced, one new")

    versions = ["_row_created_at_version", "_row_last_updated_at_version"]
    rows = lance.dataset(target.dataset.location).to_table(["id", *versions]).sort_by("id")
    assert rows["_row_last_updated_at_version"].to_pylist() == [1, 1, 1, 2, 2]
    assert rows["_row_created_at_version"].to_pylist()[:3] == [1, 1, 1]
