"""The plan by which the columns of rows are merged into those of a table, and what Lance makes of it."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as some

from airflow_provider_lancens.spark.table.column_fit import MergePlan, alter, merge_plan, widens
from airflow_provider_lancens.spark.table.row_casts import merged

TABLE = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("price", pa.float32()),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("list", pa.list_(pa.struct([("q", pa.int32())]))),
        ("map", pa.map_(pa.string(), pa.struct([("q", pa.int32())]))),
    ]
)
ID = ("id", pa.int32())


def plan(*columns: Any, **how: Any) -> MergePlan:
    return merge_plan(pa.schema([ID, *columns]), TABLE, **how)


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        ([], ""),
        ([("price", pa.float16()), ("s", pa.struct([("b", pa.string())]))], ""),
        ([("n", pa.int64())], "adds n (int64)"),
        ([("nothing", pa.null())], ""),
        ([pa.field("n", pa.int64(), nullable=False)], "adds n (int64)"),
        ([("price", pa.float64())], "widens price from float to double"),
        ([("s", pa.struct([("c", pa.int8()), ("a", pa.int64())]))], "adds s.c (int8); widens s.a"),
        ([("s", pa.struct([("c", pa.null())]))], ""),
        ([("list", pa.list_(pa.struct([("w", pa.int8())])))], "adds list.item.w (int8)"),
        ([("list", pa.large_list(pa.struct([("q", pa.int64())])))], "widens list.item.q from int32 to int64"),
        (
            [("n", pa.struct([pa.field("x", pa.int8(), nullable=False), ("nothing", pa.null())]))],
            "adds n (struct<x: int8>)",
        ),
    ],
)
def test_columns_are_added_and_widened(columns: list[Any], changes: str) -> None:
    made = plan(*columns)

    assert made.reasons == []
    assert str(made).startswith(changes)
    assert bool(str(made)) == bool(changes)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([("price", pa.string())], "price is string, but float in the table"),
        ([("price", pa.int64())], "price is int64, but float in the table"),
        ([("s", pa.int64())], "s is int64, but struct<a: int32, b: string> in the table"),
        ([("s", pa.struct([("a", pa.string())]))], "s.a is string, but int32 in the table"),
        (
            [("map", pa.map_(pa.string(), pa.struct([("z", pa.int8())])))],
            "map is map<string, struct<z: int8>>",
        ),
        ([("n", pa.list_(pa.null()))], "n is list<item: null>, which has values without a type; cast it"),
        ([("n", pa.int8()), ("N", pa.int8())], "n is not in the table, and another column differs"),
        (
            [("PRICE", pa.float32())],
            "PRICE is not in the table, and another column differs from it only in case",
        ),
        ([("s", pa.struct([("A", pa.int32())]))], "s.A is not in the table, and another column differs"),
        ([("n", pa.int8()), ("n", pa.int8())], "n is in the rows several times"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name_and_type(columns: list[Any], reason: str) -> None:
    assert any(one.startswith(reason) for one in plan(*columns).reasons)


def test_a_missing_column_must_be_nullable() -> None:
    made = merge_plan(pa.schema([("price", pa.float32())]), TABLE)

    assert made.reasons == ["id is missing or null in the rows, and the table does not allow nulls there"]


def test_names_match_in_any_case_on_request() -> None:
    rows = pa.schema([("ID", pa.int64()), ("S", pa.struct([("B", pa.string()), ("New", pa.int8())]))])

    made = merge_plan(rows, TABLE, match_case=False)

    assert made.reasons == []
    assert str(made) == "adds s.New (int8); widens id from int32 to int64"
    assert made.match.sources == {"id": "ID", "s": "S"}
    assert made.schema.field("s").type == pa.struct([*TABLE.field("s").type, ("New", pa.int8())])


@pytest.mark.parametrize(
    ("rows", "table", "reason"),
    [
        (["a", "A"], ["a"], "A is in the rows several times"),
        (["a"], ["a", "A"], "a matches columns of the table that differ only in case"),
    ],
)
def test_names_that_differ_only_in_case_are_refused(rows: list[str], table: list[str], reason: str) -> None:
    schemas = [pa.schema(dict.fromkeys(names, pa.int8())) for names in (rows, table)]

    assert merge_plan(*schemas, match_case=False).reasons == [reason]


@pytest.mark.parametrize(
    ("file_format", "struct", "reasons"),
    [
        ((2, 1), {"z": pa.int8()}, 1),
        ((2, 2), {"z": pa.int8()}, 0),
        ((2, 0), {"a": pa.int64()}, 1),
        ((2, 1), {"a": pa.int64()}, 0),
    ],
)
def test_structs_are_changed_only_where_the_file_format_allows_it(
    file_format: tuple[int, int], struct: dict[str, pa.DataType], reasons: int
) -> None:
    made = plan(("s", pa.struct(list(struct.items()))), file_format=file_format)

    assert [text for text in made.reasons if "file format is too old" in text] == made.reasons
    assert len(made.reasons) == reasons


def test_nothing_inside_a_large_list_is_changed() -> None:
    """Lance 14 corrupts the table otherwise."""
    table = pa.schema([("l", pa.large_list(pa.struct([("q", pa.int32())])))])
    rows = pa.schema([("l", pa.list_(pa.struct([("q", pa.int64())])))])

    assert len(merge_plan(rows, table).reasons) == 1


TYPES = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(5, 2),
    pa.decimal128(38, 10),
    pa.string(),
    pa.large_string(),
    pa.date32(),
    pa.timestamp("ms"),
    pa.timestamp("us"),
    pa.time32("s"),
    pa.time64("us"),
    pa.bool_(),
    pa.list_(pa.float32(), 2),
    pa.list_(pa.float64(), 2),
]


def test_lance_converts_each_type_that_widens(tmp_path: Path) -> None:
    pairs = [(old, new) for old in TYPES for new in TYPES if old != new and widens(old, new)]
    assert (pa.int32(), pa.int64()) in pairs
    assert (pa.timestamp("ms"), pa.timestamp("us")) not in pairs  # Lance doesn't check for overflow
    names = {f"c{number}": pair for number, pair in enumerate(pairs)}
    before = pa.table({name: pa.nulls(2, old) for name, (old, _) in names.items()})
    dataset = lance.write_dataset(before, tmp_path / "t")

    alter(dataset, {(name,): new for name, (_, new) in names.items()})

    assert lance.dataset(tmp_path / "t").schema.types == [new for _, new in names.values()]


_LEAVES = [
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.list_(pa.float32(), 2),
]
_NAMES = some.sampled_from("abcd")


def _structs(inner: some.SearchStrategy[pa.DataType]) -> some.SearchStrategy[pa.DataType]:
    fields = some.dictionaries(_NAMES, inner, min_size=1, max_size=3)
    return fields.map(lambda one: pa.struct(list(one.items())))


_STRUCTS = some.recursive(
    some.sampled_from(_LEAVES), lambda inner: _structs(inner) | inner.map(pa.list_), max_leaves=4
)
SCHEMAS = some.dictionaries(_NAMES, _STRUCTS, min_size=1, max_size=3).map(pa.schema)


def _rows(schema: pa.Schema) -> some.SearchStrategy[pa.Table]:
    row = some.fixed_dictionaries({field.name: _values(field.type) for field in schema})
    return some.lists(row, min_size=1, max_size=4).map(lambda rows: pa.Table.from_pylist(rows, schema))


def _values(arrow: pa.DataType) -> some.SearchStrategy[Any]:
    if pa.types.is_struct(arrow):
        children = {arrow.field(i).name: _values(arrow.field(i).type) for i in range(arrow.num_fields)}
        return some.none() | some.fixed_dictionaries(children)
    if pa.types.is_fixed_size_list(arrow):
        return some.none() | some.just([0.5, -2.0])
    if pa.types.is_list(arrow):
        return some.none() | some.lists(_values(arrow.value_type), max_size=2)
    plain = {pa.string(): some.sampled_from(["", "a"])}
    return some.none() | plain.get(arrow, some.integers(-100, 100))


def _filled(value: Any, arrow: pa.DataType) -> Any:
    """The value with the fields that it lacks."""
    if value is None or not pa.types.is_nested(arrow):
        return value
    if pa.types.is_struct(arrow):
        return {one.name: _filled(value.get(one.name), one.type) for one in arrow}
    return [_filled(one, arrow.value_type) for one in value]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=some.data(), table=SCHEMAS, rows=SCHEMAS)
def test_lance_holds_the_rows_of_both_in_the_planned_columns(
    data: some.DataObject, table: pa.Schema, rows: pa.Schema, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = merge_plan(rows, table)
    assume(not made.reasons)
    # An array fits a vector if its length does, which depends on the values.
    assume(
        not any(
            pa.types.is_fixed_size_list(one.type)
            and one.name in rows.names
            and pa.types.is_list(rows.field(one.name).type)
            for one in table
        )
    )
    old, new = data.draw(_rows(table)), data.draw(_rows(rows))
    dataset = lance.write_dataset(old, tmp_path_factory.mktemp("lance") / "t", data_storage_version="2.2")

    if made.widenings:
        alter(dataset, {path: to for path, _, to in made.widenings})
    if made.additions:
        dataset.add_columns(pa.schema(made.additions))
    batches = merged(new.to_batches(), made.schema, made.match)
    lance.write_dataset(pa.Table.from_batches(batches, made.schema), dataset.uri, mode="append")

    found = lance.dataset(dataset.uri).to_table()
    expected = [
        {one.name: _filled(row.get(one.name), one.type) for one in made.schema}
        for row in (*old.to_pylist(), *new.to_pylist())
    ]
    assert found.schema == made.schema
    assert found.to_pylist() == expected
