"""What happens to rows with other columns than the table: each change, each way to write, by schema mode."""

import re
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace import DescribeTableRequest
from lance_namespace.errors import TableSchemaValidationError
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec
from tests.integration.spark.faults.table_kinds import HIVE_MANAGED, HIVE_STORAGE, declare, spec_of
from tests.support.writes import write_files, write_table

pytestmark = pytest.mark.thorough

BEFORE = "SELECT 1 AS id, 'x' AS name, 10 AS amount, named_struct('a', 1) AS s"
ROW = {"id": 1, "name": "x", "amount": 10, "s": {"a": 1}}
NEW = {"id": 2, "name": "y", "amount": 20, "s": {"a": 2}}
CHANGES: dict[str, tuple[str, set[str], dict[str, Any]]] = {
    "gains": (
        "SELECT 2 AS id, 'y' AS name, 20 AS amount, named_struct('a', 2) AS s, 7 AS more",
        {"more"},
        {**NEW, "more": 7},
    ),
    "loses": (
        "SELECT 2 AS id, 20 AS amount, named_struct('a', 2) AS s",
        {"name"},
        {**NEW, "name": None},
    ),
    "widens": (
        "SELECT 2 AS id, 'y' AS name, 5000000000 AS amount, named_struct('a', 2) AS s",
        {"amount"},
        {**NEW, "amount": 5_000_000_000},
    ),
    "renames": (
        "SELECT 2 AS id, 'y' AS label, 20 AS amount, named_struct('a', 2) AS s",
        {"name", "label"},
        {**NEW, "name": None, "label": "y"},
    ),
    "nested": (
        "SELECT 2 AS id, 'y' AS name, 20 AS amount, named_struct('a', 2, 'b', 'z') AS s",
        {"s"},
        {**NEW, "s": {"a": 2, "b": "z"}},
    ),
}
"""The rows, the columns for which they are refused by default, and the new row once they are merged."""
WAYS: dict[str, dict[str, Any]] = {
    "frame": {"mode": "append"},
    "files": {"mode": "append"},
    "upsert": {"mode": "upsert", "on": ["id"]},
    "overwrite": {"mode": "overwrite"},
}

EVERY_RUN = {
    (HIVE_STORAGE, "frame"),
    (HIVE_MANAGED, "files"),
    (HIVE_MANAGED, "upsert"),
    (HIVE_STORAGE, "overwrite"),
}
COMBINATIONS = [
    pytest.param(kind, way, marks=() if (kind, way) in EVERY_RUN else pytest.mark.long)
    for kind in (HIVE_STORAGE, HIVE_MANAGED)
    for way in WAYS
]


@pytest.fixture
def spec(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> NamespaceSpec:
    return spec_of(kind, request, tmp_path)


@pytest.mark.parametrize(("kind", "way"), COMBINATIONS)
@pytest.mark.parametrize("change", CHANGES)
def test_changed_columns_are_refused_or_merged(
    spark: SparkSession, spec: NamespaceSpec, database: str, kind: str, tmp_path: Path, change: str, way: str
) -> None:
    table = declare(spec, database, kind)
    rows, columns, new = CHANGES[change]
    write_table(spark.sql(BEFORE), spec, table)

    def write(**how: Any) -> None:
        if way != "files":
            write_table(spark.sql(rows), spec, table, **WAYS[way], **how)
            return
        folder = str(tmp_path / change)
        spark.sql(rows).write.mode("overwrite").parquet(folder)
        write_files(spark, FileSource("parquet", folder), spec, table, **WAYS[way], **how)

    with pytest.raises(TableSchemaValidationError) as refused:
        write()
    assert columns <= set(re.findall(r"\w+", str(refused.value)))
    assert content(spec, table) == [ROW]

    write(schema_mode="merge")
    assert content(spec, table) == [new] if way == "overwrite" else [_with_columns_of(new), new]

    if way == "overwrite":
        write(schema_mode="overwrite")
        dropped = {"loses": {"name"}, "renames": {"name"}}.get(change, set())
        assert content(spec, table) == [{name: new[name] for name in new if name not in dropped}]


def _with_columns_of(new: dict[str, Any]) -> dict[str, Any]:
    """The row of before, with the columns and fields that the table has now."""
    nested = {field: ROW["s"].get(field) for field in new["s"]}  # type: ignore[attr-defined]
    return {**{name: ROW.get(name) for name in new}, "s": nested}


def content(spec: NamespaceSpec, table: str) -> list[dict[str, Any]]:
    found = spec.connect().describe_table(DescribeTableRequest(id=table.split("$")))
    rows = lance.dataset(found.location).to_table().to_pylist()
    return sorted(rows, key=lambda row: int(row["id"]))
