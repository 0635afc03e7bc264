from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.system_columns import SYSTEM_COLUMNS
from airflow_provider_lancens.spark.table.column_fit import check_columns

ALLOWED = [
    "a b",
    "a'b",
    'a"b',
    "ünï\U0001f600",
    "a/b",
    "a\\b",
    "a\nb",
    "a,b",
    "a[0]",
    "select",
    "1",
    " a ",
    "_rowID",
]
REFUSED = ["a`b", "a.b", "", "a\0b", "*", *sorted(SYSTEM_COLUMNS)]


def columns(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])


@pytest.mark.parametrize("name", ALLOWED)
def test_an_allowed_name_is_written_read_filtered_and_indexed_by_lance(name: str, tmp_path: Path) -> None:
    rows = pa.table([[1, 2], ["x", "y"]], names=[name, "other"])

    check_columns("db$t", rows.schema)

    lance.write_dataset(rows, tmp_path / "t")
    lance.dataset(tmp_path / "t").create_scalar_index(name, "BTREE")
    kept = lance.dataset(tmp_path / "t").to_table(columns=[name, "other"], filter=f"`{name}` = 2")
    assert kept == rows.slice(1)


@pytest.mark.parametrize("name", REFUSED)
def test_a_column_name_unsupported_by_lance_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        check_columns("db$t", columns("fine", name))

    assert str(refusal.value).startswith(f"table db$t: column {name!r}: ")


@pytest.mark.parametrize("name", [name for name in REFUSED if name != ""])
def test_lance_still_fails_on_the_names_that_are_refused(name: str, tmp_path: Path) -> None:
    """If this fails, Lance supports the name now, and its refusal can be removed."""
    rows = pa.table([[1, 2], ["x", "y"]], names=[name, "other"])

    def write_and_read() -> bool:
        lance.write_dataset(rows, tmp_path / "t")
        return bool(lance.dataset(tmp_path / "t").scanner(columns=[name, "other"]).to_table() == rows)

    with pytest.raises((OSError, ValueError)):
        write_and_read()


STRUCTS = pa.list_(pa.struct([("x", pa.int64())]), 2)


@pytest.mark.parametrize(
    "arrow", [STRUCTS, pa.list_(STRUCTS), pa.list_(pa.string(), 2), pa.list_(pa.binary(), 2)]
)
def test_an_array_of_a_fixed_size_that_lance_cannot_store_is_refused(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match=r"column 'v.*': an array of a fixed size can't have"):
        check_columns("db$t", pa.schema([("v", arrow)]))


@pytest.mark.parametrize(
    "arrow",
    [pa.float32(), pa.float16(), pa.bool_(), pa.decimal128(5, 2), pa.date32(), pa.list_(pa.int8(), 2)],
)
def test_an_array_of_a_fixed_size_may_have_values_of_one_size(arrow: pa.DataType, tmp_path: Path) -> None:
    rows = pa.table({"v": pa.nulls(2, pa.list_(arrow, 2)), "id": [1, 2]})
    check_columns("db$t", rows.schema)
    assert lance.write_dataset(rows, tmp_path / "t").to_table() == rows


def test_lance_still_cannot_read_structs_in_arrays_of_a_fixed_size(tmp_path: Path) -> None:
    """If this fails, Lance can read them now, and their refusal can be removed."""
    rows = pa.table({"v": pa.array([[{"x": 1}, {"x": 2}]], STRUCTS), "id": [1]})

    with pytest.raises(ValueError, match="differing lengths"):
        lance.write_dataset(rows, tmp_path / "t", data_storage_version="2.2").to_table()


def test_every_refused_column_is_named_at_once() -> None:
    with pytest.raises(InvalidInputError) as refusal:
        check_columns("db$t", columns("a`.b", "fine", "_rowid"))

    message = str(refusal.value)
    assert "column 'a`.b': the name contains a dot and a backtick" in message
    assert "column '_rowid'" in message
    assert "fine" not in message


def test_two_columns_of_one_name_are_refused_and_of_another_case_are_not() -> None:
    check_columns("db$t", columns("a", "A"))

    with pytest.raises(InvalidInputError, match="column 'a': two columns have this name"):
        check_columns("db$t", columns("a", "b", "a"))


def test_rows_without_columns_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="a table must have at least one column"):
        check_columns("db$t", pa.schema([]))


@pytest.mark.parametrize("name", ["a`b", "a.b", "", "*", "_rowid"])
def test_a_field_of_a_struct_may_have_any_name(name: str, tmp_path: Path) -> None:
    rows = pa.table(
        {"s": pa.array([{name: 1, "o": 2}, None], pa.struct([(name, pa.int64()), ("o", pa.int64())]))}
    )

    check_columns("db$t", rows.schema)

    lance.write_dataset(rows, tmp_path / "t")
    assert lance.dataset(tmp_path / "t").to_table() == rows


@pytest.mark.parametrize(
    ("arrow", "message"),
    [
        (pa.struct([]), "column 's': a struct must have at least one field"),
        (pa.list_(pa.struct([])), "column 's.item': a struct must have at least one field"),
        (pa.struct([("a", pa.int8()), ("a", pa.int8())]), "column 's': two fields are named 'a'"),
        (
            pa.map_(pa.string(), pa.struct([("a\0b", pa.int8())])),
            r"column 's.entries.value': a NUL character",
        ),
    ],
    ids=["no-fields", "no-fields-in-list", "repeated", "nul"],
)
def test_an_unsupported_struct_is_refused_with_its_path(arrow: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_columns("db$t", pa.schema([("s", arrow)]))
