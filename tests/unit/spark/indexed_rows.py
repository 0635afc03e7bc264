"""Rows whose index shows whether it is right, and indices of all types on them."""

from collections.abc import Mapping
from typing import Any

import lance
import pyarrow as pa
from lance.query import MatchQuery

INDICES: dict[str, Mapping[str, Any]] = {
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
OLD, NEW = 600, 20


def rows_of(ids: range, word: str, place: float) -> pa.Table:
    """Rows whose text, list and vector show which write they are of."""
    size = len(ids)
    values = [place + one / 10_000 for one in ids for _ in range(2)]
    vector = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), 2)
    return pa.table({"id": list(ids), "s": [word] * size, "tags": [[word]] * size, "vector": vector})


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


def column_of(index_type: str) -> str:
    """The column that has an index of this type."""
    return {"LABEL_LIST": "tags"}.get(index_type, "vector" if index_type.startswith("IVF") else "s")


def write_indexed(location: str, index_type: str, *, stable_row_ids: bool) -> None:
    """Write a table of several fragments, with an index of two segments."""
    old = rows_of(range(OLD // 2), "alpha", 0)
    lance.write_dataset(old, location, max_rows_per_file=OLD // 4, enable_stable_row_ids=stable_row_ids)
    dataset = lance.dataset(location)
    make: Any = dataset.create_index if index_type.startswith("IVF") else dataset.create_scalar_index
    make(column_of(index_type), index_type, **INDICES[index_type])
    lance.write_dataset(rows_of(range(OLD // 2, OLD), "alpha", 0), location, mode="append")
    lance.dataset(location).optimize.optimize_indices(num_indices_to_merge=0)


def write_indexed_deleted_compacted(
    location: str, index_type: str, *, stable_row_ids: bool
) -> lance.LanceDataset:
    """Write a table with a vector index of one segment, delete a third of its rows, and compact it."""
    rows = rows_of(range(OLD), "alpha", 0)
    lance.write_dataset(rows, location, max_rows_per_file=OLD // 4, enable_stable_row_ids=stable_row_ids)
    lance.dataset(location).create_index("vector", index_type, **INDICES[index_type])
    lance.dataset(location).delete("id % 3 = 0")
    lance.dataset(location).optimize.compact_files()
    return lance.dataset(location)
