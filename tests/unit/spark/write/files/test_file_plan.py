"""The driver's plan for files, before any Spark task starts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableSchemaValidationError,
)

from airflow_provider_lancens.spark import FileSource
from airflow_provider_lancens.spark.write.files.file_plan import FilePlan, FileUnit, plan, shares
from airflow_provider_lancens.spark.write.files.file_system import SourceFile

Planned = Callable[..., FilePlan]


def unit(number: int, size: int) -> FileUnit:
    return FileUnit(SourceFile("/f", 1000, "", "/"), number, size)


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    def make_plan(kind: Any, **fields: Any) -> FilePlan:
        return plan(FileSource(kind, str(tmp_path), **fields), {})

    return make_plan


def write(path: Path, rows: pa.Table, **options: Any) -> None:
    pq.write_table(rows, path, **options)


@pytest.mark.parametrize(
    ("sizes", "count", "cut"),
    [
        ([10, 10, 10, 10], 2, [[0, 1], [2, 3]]),
        ([40, 10, 10, 10, 10], 2, [[0], [1, 2, 3, 4]]),
        ([10, 10], 4, [[0], [1]]),
        ([0, 0], 2, [[0, 1]]),
        ([], 2, []),
    ],
)
def test_units_are_distributed_evenly_and_in_order(
    sizes: list[int], count: int, cut: list[list[int]]
) -> None:
    units = [unit(number, size) for number, size in enumerate(sizes)]

    assert [[each.number for each in share] for share in shares(units, count)] == cut


def test_a_unit_is_a_row_group(tmp_path: Path, planned: Planned) -> None:
    write(tmp_path / "a.parquet", pa.table({"id": range(25)}), row_group_size=10)
    write(tmp_path / "b.parquet", pa.table({"id": range(5)}))

    found = planned("parquet").units

    assert [(Path(each.file.location).name, each.number) for each in found] == [
        ("a.parquet", 0),
        ("a.parquet", 1),
        ("a.parquet", 2),
        ("b.parquet", 0),
    ]
    assert all(each.bytes for each in found)


def test_only_needed_columns_are_read(tmp_path: Path, planned: Planned) -> None:
    write(tmp_path / "a.parquet", pa.table({"a": [1], "b": [2], "c": [3], "d": [4]}))

    shape = planned(
        "parquet", columns=["d", "b"], filter="c = 3", renames={"d": "x"}, casts={"b": "int8"}
    ).shape

    assert list(shape.read) == ["b", "c", "d"]
    assert shape.schema == pa.schema({"x": pa.int64(), "b": pa.int8()})


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        ({"id": pa.array([1]), "more": pa.array([1])}, "b.parquet: .*more is unexpected"),
        ({"name": pa.array(["x"])}, "b.parquet: .*id is missing; name is unexpected"),
        ({"id": pa.array([1], pa.int32())}, "b.parquet: .*id is int32, not int64"),
    ],
)
def test_a_file_of_another_schema_is_named(
    tmp_path: Path, planned: Planned, other: dict[str, Any], complaint: str
) -> None:
    write(tmp_path / "a.parquet", pa.table({"id": [1]}))
    write(tmp_path / "b.parquet", pa.table(other))

    with pytest.raises(TableSchemaValidationError, match=complaint):
        planned("parquet")


def test_types_that_were_inferred_differently_are_to_be_given(tmp_path: Path, planned: Planned) -> None:
    (tmp_path / "a.csv").write_text("id,price\n1,2.5\n")
    (tmp_path / "b.csv").write_text("id,price\n2,3\n")

    with pytest.raises(TableSchemaValidationError, match=r"not double\. They were inferred .* by schema$"):
        planned("csv")
    assert planned("csv", schema={"id": "int64", "price": "double"}).files.names == ["id", "price"]


def test_a_file_with_two_columns_of_one_name_is_refused(tmp_path: Path, planned: Planned) -> None:
    (tmp_path / "a.csv").write_text("id,name,id\n1,x,2\n")

    with pytest.raises(InvalidInputError, match=r"a\.csv: .*two columns are named id"):
        planned("csv")


def test_columns_in_another_order_are_the_same_schema(tmp_path: Path, planned: Planned) -> None:
    write(tmp_path / "a.parquet", pa.table({"id": [1], "name": ["x"]}))
    write(tmp_path / "b.parquet", pa.table({"name": ["x"], "id": [1]}))

    assert planned("parquet").files.names == ["id", "name"]


def test_a_file_of_another_format_is_named(tmp_path: Path, planned: Planned) -> None:
    (tmp_path / "a.parquet").write_text("id\n1\n")

    with pytest.raises(InvalidInputError, match=r"file .*a\.parquet: cannot read it as parquet"):
        planned("parquet")


def test_a_text_column_without_values_takes_the_type_of_other_files(tmp_path: Path, planned: Planned) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,\n")
    (tmp_path / "b.csv").write_text("id,name\n,x\n")
    (tmp_path / "c.csv").write_text("")

    assert planned("csv").files == pa.schema({"id": pa.int64(), "name": pa.string()})


def test_a_csv_file_that_lacks_a_column_of_the_schema_is_named(tmp_path: Path, planned: Planned) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")

    with pytest.raises(InvalidInputError, match=r"a.csv: .*columns name are missing"):
        planned("csv", schema={"id": "int64", "name": "string"})


def test_empty_files_need_a_schema(tmp_path: Path, planned: Planned) -> None:
    (tmp_path / "a.json").write_text("")

    with pytest.raises(InvalidInputError, match="all files are empty"):
        planned("json")
    assert planned("json", schema={"id": "int64"}).files == pa.schema({"id": pa.int64()})


@pytest.mark.parametrize(
    ("fields", "error", "complaint"),
    [
        ({"columns": ["nobody"]}, TableColumnNotFoundError, "columns: the files have no nobody"),
        ({"renames": {"nobody": "x"}}, TableColumnNotFoundError, "renames: the files have no nobody"),
        ({"casts": {"nobody": "int8"}}, TableColumnNotFoundError, "casts: the files have no nobody"),
        ({"casts": {"id": "number"}}, InvalidInputError, r"casts\['id'\]: expected a type"),
        ({"filter": "nobody = 1"}, InvalidInputError, "no column 'nobody'"),
    ],
)
def test_fields_that_do_not_match_the_files_are_named(
    tmp_path: Path, planned: Planned, fields: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"id": 1, "name": "x"}))

    with pytest.raises(error, match=complaint):
        planned("json", **fields)
