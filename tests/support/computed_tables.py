"""Tables with a column to compute."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_lancens.spark import ComputeResult
from airflow_provider_lancens.spark.compute.compute_column import compute_column
from tests.support.maintained_tables import Maintained, rows

Meanwhile = Callable[[Callable[[], object]], None]


def doubled(batch: pa.RecordBatch) -> pa.Array:
    return pc.multiply(batch["id"], 2)


def compute(table: Maintained, function: Any = doubled, **arguments: Any) -> ComputeResult:
    """Compute column `n` from column `id`, by default as its double."""
    given: dict[str, Any] = {"column": "n", "columns": ["id"], **arguments}
    return compute_column(table.spark, table.spec, table.id, function=function, **given)


def values(table: Maintained, column: str = "n") -> dict[int, Any]:
    """The column's values by `id`."""
    found = table.newest.to_table(columns=["id", column]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row[column] for row in found}


def expected(ids: Any) -> dict[int, Any]:
    return {number: 2 * number for number in ids}


def folder(table: Maintained) -> Path:
    return Path(table.described.location.removeprefix("file://"))


def data_files(table: Maintained) -> dict[str, str]:
    """The digests of the data files, by their names."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (folder(table) / "data").iterdir()
    }


def fill(table: Maintained, fragments: int = 4, **arguments: Any) -> None:
    """Write ids, ten in a fragment."""
    table.write(rows(table.spark, 0, 10 * fragments, fragments), **arguments)
