from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.spark.table.row_casts import conform, uncut, uncut_files

DECIMALS = pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(5, 2))
NESTED = pa.array(
    [[("k", {"d": Decimal("1.50"), "i": 1})], None],
    pa.map_(pa.string(), pa.struct([("d", pa.decimal128(5, 2)), ("i", pa.int32())])),
)


def misaligned(array: pa.Array) -> pa.Array:
    """The array in memory that is aligned to 8 bytes but not to 16, as Spark passes it."""
    children = [misaligned(child) for child in children_of(array)]
    own = [moved(buffer) for buffer in array.buffers()[: array.type.num_buffers]]
    return pa.Array.from_buffers(array.type, len(array), own, children=children or None)


def children_of(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_map(array.type):
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[array.type.key_field, array.type.item_field]
        )
        return [entries]
    if pa.types.is_struct(array.type):
        return [array.field(i) for i in range(array.type.num_fields)]
    return [array.values] if pa.types.is_list(array.type) else []


def moved(buffer: pa.Buffer | None) -> pa.Buffer | None:
    if buffer is None:
        return None
    memory = bytearray(buffer.size + 16)
    whole = pa.py_buffer(memory)
    offset = (8 - whole.address) % 16
    memory[offset : offset + buffer.size] = buffer.to_pybytes()
    return whole.slice(offset, buffer.size)


def misaligned_buffers(array: pa.Array) -> list[int]:
    return [i for i, buffer in enumerate(array.buffers()) if buffer and buffer.size and buffer.address % 16]


@pytest.mark.parametrize("column", [DECIMALS, NESTED], ids=["flat", "nested"])
def test_decimals_are_aligned_as_lance_needs_them(column: pa.Array) -> None:
    batch = pa.record_batch({"d": misaligned(column)})
    assert misaligned_buffers(batch.column(0))

    [out] = conform([batch], batch.schema)

    assert not misaligned_buffers(out.column(0))
    assert out.column(0).equals(column)


def without_offsets(array: pa.Array) -> pa.Array:
    """The array as Spark 3.5 passes it: an inner one without values has no offsets, but memory of others."""
    others = pa.py_buffer(b"\xf5" * 64)
    own = array.buffers()[: array.type.num_buffers]
    if not len(array):
        own = [others.slice(8 * i, 0) if i else None for i in range(len(own))]
    children = [without_offsets(child) for child in children_of(array)]
    return pa.Array.from_buffers(array.type, len(array), own, children=children or None)


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.list_(pa.list_(pa.binary())),
        pa.list_(pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))])),
        pa.map_(pa.string(), pa.string()),
        pa.struct([("tags", pa.list_(pa.string()))]),
    ],
    ids=str,
)
def test_arrays_without_any_values_are_written(kind: pa.DataType, tmp_path: Path) -> None:
    empty = {"tags": []} if pa.types.is_struct(kind) else []
    rows = pa.array([empty, None], kind)
    batch = pa.record_batch({"values": without_offsets(rows)})

    written = lance.write_dataset(
        pa.Table.from_batches(conform([batch], batch.schema)), tmp_path / "t", data_storage_version="2.2"
    )

    assert written.to_table().column("values").to_pylist() == rows.to_pylist()


def test_columns_are_in_the_order_of_the_schema() -> None:
    batch = pa.record_batch({"a": [1], "b": ["x"], "unused": [0]})

    [out] = conform([batch], pa.schema({"b": pa.large_string(), "a": pa.int32()}))

    assert out.to_pylist() == [{"b": "x", "a": 1}]


def test_a_vector_of_another_length_is_refused_by_column() -> None:
    batch = pa.record_batch({"v": pa.array([[1.0, 2.0], [1.0]], pa.list_(pa.float32()))})

    with pytest.raises(ValueError, match=r"column v: .*expected size"):
        list(conform([batch], pa.schema({"v": pa.list_(pa.float32(), 2)})))


def test_nanoseconds_are_truncated_to_sparks_precision() -> None:
    batch = pa.record_batch({"at": pa.array([1_000_000_001], pa.timestamp("ns"))})

    schema = pa.schema({"at": pa.timestamp("us")})

    [out] = conform([batch], schema, cut_times=True)

    assert out.column("at").cast(pa.int64()).to_pylist() == [1_000_000]
    with pytest.raises(ValueError, match=r"column at: .*would lose data"):
        list(conform([batch], schema))


def test_a_timestamp_out_of_range_of_nanoseconds_is_refused_by_column() -> None:
    batch = pa.record_batch({"at": pa.array([2**62], pa.timestamp("us"))})

    with pytest.raises(ValueError, match="column at"):
        list(conform([batch], pa.schema({"at": pa.timestamp("ns")})))


def test_a_null_vector_stays_null() -> None:
    batch = pa.record_batch({"v": pa.array([[1.0, 2.0], None], pa.list_(pa.float32()))})

    [out] = conform([batch], pa.schema({"v": pa.list_(pa.float32(), 2)}))

    assert out.to_pylist() == [{"v": [1.0, 2.0]}, {"v": None}]


def test_a_null_in_a_non_nullable_column_is_refused_by_column() -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])

    with pytest.raises(ValueError, match=r"column n: .*does not allow nulls"):
        list(conform([pa.record_batch({"n": [1, None]})], schema))


def test_vectors_that_are_all_null_stay_null() -> None:
    no_values = pa.Array.from_buffers(pa.float32(), 0, [None, None])
    offsets = pa.array([0, 0, 0], pa.int32()).buffers()[1]
    as_spark_sends_it = pa.Array.from_buffers(
        pa.list_(pa.float32()), 2, [pa.py_buffer(b"\0"), offsets], children=[no_values]
    )

    [out] = conform([pa.record_batch({"v": as_spark_sends_it})], pa.schema({"v": pa.list_(pa.float32(), 2)}))

    assert out.to_pylist() == [{"v": None}, {"v": None}]


def unchecked(*values: bytes) -> pa.Array:
    """Text that is claimed to be UTF-8."""
    stored = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())


@pytest.mark.parametrize(
    "nest",
    [
        lambda text: text,
        lambda text: pa.StructArray.from_arrays([text], names=["s"]),
        lambda text: pa.ListArray.from_arrays(pa.array(range(len(text) + 1), pa.int32()), text),
        lambda text: pa.MapArray.from_arrays(range(len(text) + 1), pa.array(range(len(text))), text),
    ],
    ids=["column", "struct", "list", "map"],
)
def test_text_that_is_not_utf8_is_refused_by_row_and_column(nest: Callable[[pa.Array], pa.Array]) -> None:
    good = pa.record_batch({"n": [1, 2], "s": nest(pa.array(["a", "b"]))})
    values = [b"ok", "\u00e9".encode(), b"x", b"\xffA", b"ok"]
    bad = pa.record_batch({"n": list(range(5)), "s": nest(unchecked(*values))})

    checked = conform([good, bad], good.schema)

    assert next(checked).equals(good)
    with pytest.raises(ValueError, match="row 6, column s: text that isn't UTF-8"):
        next(checked)


def test_bytes_need_not_be_utf8() -> None:
    batch = pa.record_batch({"b": [b"\xff"]})

    assert list(conform([batch], batch.schema)) == [batch]


def test_conformed_values_are_neither_copied_nor_checked_again_unless_they_are_cast() -> None:
    batch = pa.record_batch({"d": pa.array([1], pa.decimal128(10, 2)), "s": unchecked(b"\xff")})

    [same] = conform([batch], batch.schema, conformed=True)

    assert [one.buffers()[1].address for one in same] == [one.buffers()[1].address for one in batch]
    with pytest.raises(RowError, match="UTF-8"):
        list(conform([batch], pa.schema({"s": pa.large_string()}), conformed=True))


def of_structs(nest: Callable[[pa.Array], pa.Array]) -> pa.Array:
    return nest(pa.array([{"x": {"y": number}} if number % 3 else None for number in range(20)]))


@pytest.mark.parametrize(
    "nest",
    [
        lambda values: values,
        lambda values: pa.StructArray.from_arrays([values.slice(2)], ["s"]),
        lambda values: pa.ListArray.from_arrays([0, 2, 3, 3, 4, 6], values.slice(2)),
        lambda values: pa.MapArray.from_arrays([0, 2, 3, 3, 4, 6], list("abcdef"), values.slice(2, 6)),
    ],
    ids=["column", "struct", "list", "map"],
)
def test_parts_of_structs_inside_structs_are_written(
    nest: Callable[[pa.Array], pa.Array], tmp_path: Path
) -> None:
    part = pa.record_batch({"s": of_structs(nest)}).slice(1, 3)

    stored = lance.write_dataset(pa.Table.from_batches([uncut(part)]), tmp_path, data_storage_version="2.2")

    assert stored.to_table().to_pylist() == part.to_pylist()


def of_flags(nest: Callable[[pa.Array], pa.Array]) -> pa.Array:
    flags = [True, False, None]
    return nest(pa.array([{"x": flags[number % 3]} if number % 4 else None for number in range(40)]))


@pytest.mark.parametrize(
    "nest",
    [
        lambda values: values,
        lambda values: pa.StructArray.from_arrays([values], ["s"]),
        lambda values: pa.ListArray.from_arrays(list(range(0, 41, 2)), values),
    ],
    ids=["column", "struct", "list"],
)
def test_parts_of_structs_with_flags_are_written(
    nest: Callable[[pa.Array], pa.Array], tmp_path: Path
) -> None:
    whole = pa.record_batch({"s": of_flags(nest)})
    parts = [whole.slice(0, 7), whole.slice(7, 6), whole.slice(13)]

    stored = lance.write_dataset(pa.Table.from_batches(map(uncut, parts)), tmp_path)

    assert stored.to_table().to_pylist() == whole.to_pylist()


def test_a_batch_that_two_files_share_is_divided_at_the_end_of_a_file(tmp_path: Path) -> None:
    whole = pa.record_batch({"s": of_flags(lambda values: values)})
    batches = [whole.slice(0, 5), whole.slice(5)]

    stored = lance.write_dataset(
        pa.Table.from_batches(uncut_files(batches, 8)), tmp_path, max_rows_per_file=8
    )

    assert [fragment.physical_rows for fragment in stored.get_fragments()] == [8] * 5
    assert stored.to_table().to_pylist() == whole.to_pylist()


def test_other_rows_are_not_copied() -> None:
    whole = pa.record_batch({"s": of_structs(lambda values: values)})
    part = pa.record_batch({"n": [1, 2, 3], "t": [{"x": 1}, None, {"x": 2}]}).slice(1)

    assert uncut(whole) is whole
    assert uncut(part) is part
