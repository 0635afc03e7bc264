"""Rows of files as the tables get them, without Spark: read by the driver's plan."""

# ruff: noqa: DTZ001 times in files have no time zone unless they say so

import datetime as dt
import gzip
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableColumnNotFoundError,
)

from airflow_provider_lancens.spark import FileSource
from airflow_provider_lancens.spark.write.files.file_plan import FilePlan, fingerprint_of_files, plan
from airflow_provider_lancens.spark.write.files.file_writer import FileReader
from tests.support.pyarrow_versions import WRITES_VIEWS

Read = Callable[..., pa.Table]
UTC = dt.UTC
SPARK = {"org.apache.spark.version": "4.0.0"}
OLD_SPARK = {**SPARK, "org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "UTC"}


def rows_of(planned: FilePlan) -> pa.Table:
    batches = FileReader(planned, {}).read(planned.units, iter)
    return pa.Table.from_batches(list(batches), schema=planned.shape.schema)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def rows(kind: Any = "parquet", path: str = "", **fields: Any) -> pa.Table:
        return rows_of(plan(FileSource(kind, f"{tmp_path}{path}", **fields), {}))

    return rows


@pytest.fixture
def parquet(tmp_path: Path) -> Callable[..., Path]:
    def write(columns: Any, name: str = "a.parquet", metadata: Any = None, **options: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table(columns)
        pq.write_table(table.replace_schema_metadata(metadata), path, **options)
        return path

    return write


# Files that change


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "json"])
def test_a_file_that_is_replaced_after_the_plan_is_refused(tmp_path: Path, kind: Any) -> None:
    def land(first: int, count: int) -> None:
        table = pa.table({"id": range(first, first + count)})
        if kind == "parquet":
            pq.write_table(table, tmp_path / "a", row_group_size=10)
        elif kind == "arrow":
            with pa.ipc.new_file(tmp_path / "a", table.schema) as writer:
                writer.write_table(table, max_chunksize=10)
        else:
            lines = [json.dumps({"id": i}) if kind == "json" else str(i) for i in table["id"].to_pylist()]
            (tmp_path / "a").write_text("\n".join(lines if kind == "json" else ["id", *lines]))

    land(0, 20)
    planned = plan(FileSource(kind, str(tmp_path)), {})
    land(100, 40)

    with pytest.raises(ConcurrentModificationError, match=r"/a: it was changed after the write was planned"):
        rows_of(planned)


def test_a_file_that_is_replaced_while_it_is_read_is_refused(
    tmp_path: Path, parquet: Callable[..., Path]
) -> None:
    parquet({"id": range(20)}, row_group_size=10)
    planned = plan(FileSource("parquet", str(tmp_path)), {})

    def replacing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parquet({"id": range(40)}, row_group_size=10)
        return iter(batches)

    with pytest.raises(ConcurrentModificationError):
        list(FileReader(planned, {}).read(planned.units, replacing))


def test_a_file_that_is_removed_after_the_plan_is_refused(
    tmp_path: Path, parquet: Callable[..., Path]
) -> None:
    file = parquet({"id": [1]})
    planned = plan(FileSource("parquet", str(tmp_path)), {})
    file.unlink()

    with pytest.raises(ConcurrentModificationError, match="it is gone"):
        rows_of(planned)


def test_files_that_changed_since_their_fingerprint_are_refused(
    tmp_path: Path, parquet: Callable[..., Path]
) -> None:
    source = FileSource("parquet", str(tmp_path))
    parquet({"id": [1]})
    before = fingerprint_of_files(source, {})
    assert plan(source, {}, fingerprint=before).units
    parquet({"id": [1, 2]})

    with pytest.raises(ConcurrentModificationError, match="changed after their fingerprint was computed"):
        plan(source, {}, fingerprint=before)


# Times


def test_int96_times_are_moments_as_far_as_spark_reaches(read: Read, parquet: Callable[..., Path]) -> None:
    ends = [
        dt.datetime(1, 1, 1),
        dt.datetime(2024, 3, 10, 2, 30),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    ]
    columns = {
        "at": pa.array(ends[1:2], pa.timestamp("us")),
        "all": pa.array([ends[1:2]], pa.list_(pa.timestamp("us"))),
    }
    parquet(columns, metadata=SPARK, use_deprecated_int96_timestamps=True)

    found = read()

    assert found.schema.types == [pa.timestamp("us", "UTC"), pa.list_(pa.timestamp("us", "UTC"))]
    assert found.to_pylist() == [{"at": ends[1].replace(tzinfo=UTC), "all": [ends[1].replace(tzinfo=UTC)]}]


def test_nanoseconds_of_int96_times_are_refused_with_their_row(
    read: Read, parquet: Callable[..., Path]
) -> None:
    parquet({"at": pa.array([1000, None, 1001], pa.timestamp("ns"))}, use_deprecated_int96_timestamps=True)

    with pytest.raises(
        InvalidInputError, match=r"a\.parquet: row 3, column at: .*nanoseconds of an INT96 time"
    ):
        read()


def test_nanoseconds_of_int96_times_inside_a_value_are_refused_with_their_row(
    read: Read, parquet: Callable[..., Path]
) -> None:
    times = pa.array([[1000], None, [], [2000, None, 1001]], pa.list_(pa.timestamp("ns")))
    parquet({"at": times}, use_deprecated_int96_timestamps=True)

    with pytest.raises(
        InvalidInputError, match=r"a\.parquet: row 4, column at: .*nanoseconds of an INT96 time"
    ):
        read()


def test_the_condition_of_int96_times_compares_moments(read: Read, parquet: Callable[..., Path]) -> None:
    times = pa.array([dt.datetime(2024, 1, day) for day in (1, 2, 3)], pa.timestamp("us"))
    parquet({"at": times}, use_deprecated_int96_timestamps=True, row_group_size=1)

    found = read(filter="at > '2024-01-01T12:00:00Z'")

    assert [at.day for at in found["at"].to_pylist()] == [2, 3]


@pytest.mark.parametrize(
    "text", ["x > 2", "x != 1.5", "x = 'NaN'", "x NOT IN (1.5)", "NOT x < 2", "st.x > 2", "x > id"]
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_beside_equal_values_matches_a_condition(
    read: Read, parquet: Callable[..., Path], kind: pa.DataType, text: str
) -> None:
    x = pa.array([1.5, 1.5, float("nan"), 1.5, 1.5, 1.5], kind)
    columns = {"row": range(6), "x": x, "id": pa.array([2] * 6, kind)}
    parquet({**columns, "st": pa.StructArray.from_arrays([x], ["x"])}, row_group_size=3)

    assert read(filter=text)["row"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s LIKE 'a%'", [0]),
        ("s NOT IN ('a')", [1]),
        ("length(s) = 1", [0, 1]),
        ("s IS NULL OR year(day) = 2026", [0, 2, 3]),
        ("st.x IS NULL", [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("first", ["a.parquet", "z.parquet"])
def test_a_condition_may_name_a_column_without_any_value_in_one_file(
    read: Read, parquet: Callable[..., Path], text: str, found: list[int], first: str
) -> None:
    values = {"s": ["a", "b"], "day": [dt.date(2026, 1, 1), None], "st": [{"x": 1}, None]}
    parquet({"row": [0, 1], **values}, "m.parquet")
    parquet({"row": [2, 3], **{name: pa.nulls(2) for name in values}}, first)

    assert sorted(read(filter=text)["row"].to_pylist()) == found


def test_dates_in_the_old_calendar_stay_the_same_dates(read: Read, parquet: Callable[..., Path]) -> None:
    # Days since 1970 that Spark's LEGACY mode writes for 1500-03-01, 1582-10-04 and 0001-01-01.
    days = pa.array([-171595, None, -141428, -719164, 0], pa.int32()).cast(pa.date32())
    nested = pa.array(
        [[{"d": -141428}], None, [], [{"d": None}], []], pa.list_(pa.struct([("d", pa.int32())]))
    )
    nested = nested.cast(pa.list_(pa.struct([("d", pa.date32())])))
    parquet({"d": days, "n": nested}, metadata=OLD_SPARK)

    found = read()

    dates = [dt.date(1500, 3, 1), None, dt.date(1582, 10, 4), dt.date(1, 1, 1), dt.date(1970, 1, 1)]
    assert found["d"].to_pylist() == dates
    assert found["n"].to_pylist() == [[{"d": dt.date(1582, 10, 4)}], None, [], [{"d": None}], []]
    assert read(filter="d = '1500-03-01'").num_rows == 1


def test_times_in_the_old_calendar_are_converted_in_utc_and_refused_in_other_zones(
    read: Read, parquet: Callable[..., Path]
) -> None:
    second = 1_000_000
    old = pa.array([None, -141428 * 86400 * second + second], pa.timestamp("us", "UTC"))
    parquet({"at": old}, metadata=OLD_SPARK)
    parquet({"at": old}, "b/b.parquet", metadata={**OLD_SPARK, "org.apache.spark.timeZone": "Europe/Paris"})
    naive = old.cast(pa.timestamp("us"))
    parquet({"at": naive}, "c/c.parquet", metadata=OLD_SPARK)

    assert read(path="/a.parquet")["at"].to_pylist()[1] == dt.datetime(1582, 10, 4, 0, 0, 1, tzinfo=UTC)
    with pytest.raises(
        InvalidInputError, match=r"b\.parquet: row 2, column at: .*not known in which calendar"
    ):
        read(path="/b")
    assert read(path="/c")["at"].equals(pa.chunked_array([naive]))


# Nested values


def test_what_is_inside_a_value_may_be_null_as_in_a_data_frame(
    read: Read, parquet: Callable[..., Path]
) -> None:
    required = pa.schema(
        [
            ("l", pa.list_(pa.field("element", pa.int32(), nullable=False))),
            ("m", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
            ("s", pa.struct([pa.field("x", pa.int8(), nullable=False)])),
        ]
    )
    rows = [{"l": [1], "m": [("a", 1)], "s": {"x": 1}}, {"l": [], "m": None, "s": None}]
    parquet(pa.Table.from_pylist(rows, schema=required))

    found = read()

    assert found.to_pylist() == rows
    assert found.schema.field("l").type.value_field == pa.field("item", pa.int32())
    assert found.schema.field("m").type.item_field.nullable
    assert found.schema.field("s").type.field("x").nullable


@pytest.mark.skipif(not WRITES_VIEWS, reason="this pyarrow writes no views to Parquet")
def test_views_of_lists_keep_their_values(read: Read, parquet: Callable[..., Path]) -> None:
    parquet({"v": pa.array([[1, 2], None, [], [3]], pa.list_view(pa.int32()))})

    assert read()["v"].to_pylist() == [[1, 2], None, [], [3]]


@pytest.mark.skipif(not WRITES_VIEWS, reason="this pyarrow casts no views inside other values")
@pytest.mark.parametrize(
    ("text", "found"), [("n > 1", [1, 2]), ("s = 'b'", [1]), ("st.x = 'a'", [0]), ("d LIKE 'x_'", [2])]
)
def test_rows_with_views_are_filtered(read: Read, tmp_path: Path, text: str, found: list[int]) -> None:
    s = pa.array(["a", "b", None], pa.string_view())
    values = {
        "n": pa.array([1, 2, 3]),
        "s": s,
        "b": pa.array([b"a", None, b"c"], pa.binary_view()),
        "st": pa.StructArray.from_arrays([s], ["x"]),
        "l": pa.ListArray.from_arrays([0, 1, 1, 3], s),
        "m": pa.MapArray.from_arrays([0, 1, 1, 2], ["k", "l"], s.slice(0, 2)),
        "d": pa.array(["x", None, "xy"]).dictionary_encode(),
    }
    table = pa.table(values)
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)

    rows = table.to_pylist()
    assert read("arrow", filter=text).to_pylist() == [rows[number] for number in found]


# Folders


def test_names_of_folders_are_columns_of_the_types_that_spark_infers(
    read: Read, parquet: Callable[..., Path]
) -> None:
    for day, part in (("2026-11-01", "1"), ("2026-11-02", "9999999999"), ("__HIVE_DEFAULT_PARTITION__", "3")):
        parquet({"id": [1]}, f"day={day}/part={part}/name=a%2Fb c/a.parquet")

    found = read()

    assert found.schema == pa.schema(
        {"id": pa.int64(), "day": pa.date32(), "part": pa.int64(), "name": pa.string()}
    )
    assert found.sort_by("part").to_pylist() == [
        {"id": 1, "day": dt.date(2026, 11, 1), "part": 1, "name": "a/b c"},
        {"id": 1, "day": None, "part": 3, "name": "a/b c"},
        {"id": 1, "day": dt.date(2026, 11, 2), "part": 9999999999, "name": "a/b c"},
    ]


def test_folders_columns_are_selected_filtered_cast_and_renamed(
    read: Read, parquet: Callable[..., Path]
) -> None:
    for day in (1, 2, 3):
        parquet({"id": [day * 10, day * 10 + 1]}, f"day={day}/a.parquet")

    assert read(columns=["day"])["day"].to_pylist() == [1, 1, 2, 2, 3, 3]
    found = read(filter="day > 1 AND id < 31", renames={"day": "d"}, casts={"day": "int8"})
    assert found.schema.field("d").type == pa.int8()
    assert found.to_pylist() == [{"id": 20, "d": 2}, {"id": 21, "d": 2}, {"id": 30, "d": 3}]


def test_folders_above_the_path_or_switched_off_are_no_columns(
    read: Read, parquet: Callable[..., Path]
) -> None:
    parquet({"id": [1]}, "day=1/a.parquet")

    assert read(path="/day=1").schema.names == ["id"]
    assert read(path="/day=1/a.parquet").schema.names == ["id"]
    assert read(partitions=False).schema.names == ["id"]
    assert read(path="/day=*/*.parquet").schema.names == ["id", "day"]


def test_types_of_folders_columns_can_be_given(read: Read, parquet: Callable[..., Path]) -> None:
    parquet({"id": [1]}, "code=007/a.parquet")

    assert read(partitions={"code": "string"})["code"].to_pylist() == ["007"]
    with pytest.raises(InvalidInputError, match=r"partitions: code=007: the value doesn't fit date32"):
        read(partitions={"code": "date32"})
    with pytest.raises(TableColumnNotFoundError, match="partitions: no folder of the files names day"):
        read(partitions={"day": "int32"})


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        ("b.parquet", "its folders name"),
        ("hour=1/b.parquet", "name the columns day"),
        ("day=1/x/hour=2/b.parquet", "folder 'day=1' is above one that names no column"),
        ("day=/b.parquet", "folder 'day=': expected a name and a value"),
        ("day=1/day=2/b.parquet", "two folders name day"),
    ],
)
def test_folders_of_different_columns_are_refused(
    read: Read, parquet: Callable[..., Path], other: str, complaint: str
) -> None:
    parquet({"id": [1]}, "day=0/a.parquet")
    parquet({"id": [1]}, other)

    with pytest.raises(InvalidInputError, match=complaint):
        read()
    assert read(partitions=False).num_rows == 2


def test_a_column_of_the_files_and_of_their_folders_is_refused(
    read: Read, parquet: Callable[..., Path]
) -> None:
    parquet({"id": [1], "day": [2]}, "day=1/a.parquet")

    with pytest.raises(
        InvalidInputError, match="column day: it is in the files and in the names of their folders"
    ):
        read()
    assert read(partitions=False)["day"].to_pylist() == [2]


# Casts

at = dt.datetime


@pytest.mark.parametrize(
    ("values", "to"),
    [
        (pa.array([0.1, 1e300]), "float"),
        (pa.array([0.1, 1e-300]), "float"),
        (pa.array([1.0, 70000.0]), "halffloat"),
        (pa.array([1, 100_000]), "halffloat"),
        (pa.array([1, 2]), "bool"),
        (pa.array([0.0, 0.5]), "bool"),
        (pa.array([1.0, 1.5]), "int64"),
        (pa.array([1, 300]), "int8"),
        (pa.array([1, 2**53 + 1]), "double"),
        (pa.array([at(2026, 1, 1), at(2026, 1, 1, 5)], pa.timestamp("us")), "date32"),
        (pa.array([at(2026, 1, 1), at(2026, 1, 1, 5)], pa.timestamp("us", "UTC")), "date32"),
        (pa.array([0, 1], pa.timestamp("us")), "timestamp[ms]"),
        (pa.array([Decimal("1.00"), Decimal("12345678901234567890.12")]), "double"),
        (pa.array([0.5, 0.155]), "decimal(10, 2)"),
        (pa.array([Decimal("1.50"), Decimal("1.55")]), "decimal(10, 1)"),
        (pa.array(["1.5", "1e400"]), "double"),
        (pa.array(["1", "x"]), "int64"),
        (pa.array(["2024-01-01T00:00:00", "2024-01-01T00:00:00+02:00"]), "timestamp[us]"),
        (pa.array([[0.1], [1e300]]), "list<float>"),
        (pa.array([{"x": 1}, {"x": 2}]), "struct<x: bool>"),
        (pa.array([[1.0, 2.0], [1.0]]), "float[2]"),
    ],
    ids=str,
)
def test_a_cast_that_would_lose_a_value_is_refused_with_file_row_and_column(
    read: Read, parquet: Callable[..., Path], values: pa.Array, to: str
) -> None:
    parquet({"id": [0, 1], "x": values}, row_group_size=1)

    with pytest.raises(InvalidInputError, match=r"file .*/a\.parquet: row 2, column x: "):
        read(casts={"x": to}, filter="id > 0")
    assert read(casts={"x": to}, filter="id = 0").num_rows == 1


@pytest.mark.parametrize(
    ("values", "to", "complaint"),
    [
        (pa.array([at(2026, 1, 1)], pa.timestamp("us")), "time64[us]", "can't be cast to time64"),
        (pa.array([{"x": 1, "y": 2}]), "struct<x: int64>", "it would drop y"),
        (pa.array([[1]]), "int64", r"casts\['x'\]: list<"),
    ],
)
def test_a_cast_that_always_loses_is_refused_on_the_driver(
    tmp_path: Path, parquet: Callable[..., Path], values: pa.Array, to: str, complaint: str
) -> None:
    parquet({"x": values})

    with pytest.raises(InvalidInputError, match=complaint):
        plan(FileSource("parquet", str(tmp_path), casts={"x": to}), {})


@pytest.mark.parametrize(
    ("values", "to", "cast"),
    [
        (pa.array([0.1, None, float("nan"), float("inf")]), "float", None),
        (pa.array([1, 0, None]), "bool", [True, False, None]),
        (pa.array([Decimal("0.10"), None]), "double", [0.1, None]),
        (pa.array([Decimal(1).scaleb(-1)], pa.decimal128(38, 18)), "double", [0.1]),
        (pa.array([0.1, None]), "decimal(10, 2)", [Decimal("0.10"), None]),
        (pa.array([at(2026, 1, 1), None], pa.timestamp("us", "UTC")), "date32", [dt.date(2026, 1, 1), None]),
        (pa.array(["inf", "0.1"]), "double", [float("inf"), 0.1]),
        (pa.array([[0.5, None], None, []]), "list<float>", [[0.5, None], None, []]),
    ],
    ids=str,
)
def test_a_cast_keeps_what_fits(
    read: Read, parquet: Callable[..., Path], values: pa.Array, to: str, cast: Any
) -> None:
    parquet({"x": values})

    found = read(casts={"x": to})["x"]

    assert found.to_pylist() == cast if cast else found.null_count == 1


# Text


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809"])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_whole_number_beyond_64_bits_is_refused_unless_its_type_is_given(
    read: Read, tmp_path: Path, kind: Any, number: str
) -> None:
    lines = [f'{{"n": {each}}}' if kind == "json" else each for each in ("1", "", number) if each]
    (tmp_path / "a").write_text("\n".join(lines if kind == "json" else ["n", *lines]))

    with pytest.raises(
        InvalidInputError, match=rf"/a: row 2, column n: {number}: the whole number is too large"
    ):
        read(kind)
    assert read(kind, schema={"n": "decimal(38, 0)"})["n"].to_pylist()[1] == Decimal(number)
    assert read(kind, schema={"n": "double"})["n"].to_pylist()[1] == float(number)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_large_fractions_are_read_and_rounded_whole_numbers_beside_them_refused(
    read: Read, tmp_path: Path, kind: Any
) -> None:
    def land(*numbers: str) -> None:
        lines = [f'{{"n": {each}}}' if kind == "json" else each for each in numbers]
        (tmp_path / "a").write_text("\n".join(lines if kind == "json" else ["n", *lines]))

    land("1e300", "0.5")
    assert read(kind)["n"].to_pylist() == [1e300, 0.5]
    land("0.5", "9007199254740993")
    with pytest.raises(InvalidInputError, match="row 2, column n: 9007199254740993"):
        read(kind)
    land("0.5", "1e300")
    with pytest.raises(InvalidInputError, match="row 2, column n: 1e"):
        read(kind, schema={"n": "float"})


def test_json_times_are_not_shifted(read: Read, tmp_path: Path) -> None:
    def land(*times: str) -> None:
        (tmp_path / "a").write_text("\n".join(json.dumps({"t": time}) for time in times))

    land("2024-01-01T00:00:00+02:00", "2024-01-01T00:00:00Z")
    assert read("json")["t"].to_pylist() == [at(2023, 12, 31, 22, tzinfo=UTC), at(2024, 1, 1, tzinfo=UTC)]
    land("2024-01-01T00:00:00", "2024-01-01T00:00:00")
    assert read("json")["t"].to_pylist() == [at(2024, 1, 1)] * 2
    land("2024-01-01T00:00:00", "2024-01-01T00:00:00+02:00")
    with pytest.raises(InvalidInputError, match=r"row 2, column t: .*expected no zone offset"):
        read("json", schema={"t": "timestamp[us]"})
    with pytest.raises(InvalidInputError, match=r"row 1, column t: .*expected a zone offset"):
        read("json", schema={"t": "timestamp[us, UTC]"})


def test_dates_and_times_of_json_can_be_given(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"d": "2024-01-01", "t": "12:30:00", "l": ["2024-01-02"]}\n')

    found = read("json", schema={"d": "date32", "t": "time32[s]", "l": "list<date32>"})

    assert found.to_pylist() == [{"d": dt.date(2024, 1, 1), "t": dt.time(12, 30), "l": [dt.date(2024, 1, 2)]}]


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize(
    ("number", "kind_of_float"),
    [("1e-400", None), ("-2e-324", "double"), ("1e-50", "float"), ("1e400", None)],
)
def test_a_number_of_text_too_small_or_too_large_for_a_float_is_refused(
    read: Read, tmp_path: Path, kind: Any, number: str, kind_of_float: str | None
) -> None:
    lines = [f'{{"n": {each}}}' if kind == "json" else each for each in ("0.5", "0.0", "-0", number)]
    (tmp_path / "a").write_text("\n".join(lines if kind == "json" else ["n", *lines]))
    schema = None if kind_of_float is None else {"n": kind_of_float}

    with pytest.raises(InvalidInputError, match=f"/a: row 4, column n: {number}: it does not fit into"):
        read(kind, schema=schema)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_the_smallest_and_largest_floats_and_zeros_are_read_from_text(
    read: Read, tmp_path: Path, kind: Any
) -> None:
    numbers = ["0", "-0.0", "0e-400", "5e-324", "1e-45", "1.7976931348623157e308", f"0.{'0' * 330}"]
    lines = [f'{{"n": {each}}}' if kind == "json" else each for each in numbers]
    (tmp_path / "a").write_text("\n".join(lines if kind == "json" else ["n", *lines]))

    assert read(kind, schema={"n": "double"})["n"].to_pylist() == list(map(float, numbers))


def test_spaces_around_numbers_of_csv_are_ignored_in_each_row(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a").write_text('n,i,f\n 1.5, 1,\n 1e300\t,2,\n"-2 ",3, 0 \n')

    found = read("csv", schema={"n": "double", "i": "int8", "f": "float"})

    assert found["n"].to_pylist() == [1.5, 1e300, -2.0]
    assert found["f"].to_pylist() == [None, None, 0.0]
    (tmp_path / "a").write_text("n,i,f\n 1.5, 1,\n 1.5, 300,\n")
    with pytest.raises(InvalidInputError, match="/a: row 2, column i"):
        read("csv", schema={"n": "double", "i": "int8", "f": "float"})


@pytest.mark.parametrize(
    ("text", "to"),
    [
        ("1" * 39, "decimal(38, 0)"),
        ("1" * 40, "decimal(38, 0)"),
        ("4409756234666881922885060251056587079.2", "decimal(38, 2)"),
        ("1623573098383680222354681016e5", "decimal(38, 10)"),
        ("98.98", "decimal(38, 38)"),
        (f"0.{'7' * 39}", "decimal(20, 0)"),
        ("1e9999999", "decimal(38, 0)"),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_number_of_text_with_too_many_digits_for_a_decimal_is_refused(
    read: Read, tmp_path: Path, kind: Any, text: str, to: str
) -> None:
    values = ["0", text]
    pq.write_table(pa.table({"x": values}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("\n".join(["x", *values]))
    (tmp_path / "a.json").write_text("\n".join(f'{{"x": {value}}}' for value in values))
    given = {"casts": {"x": to}} if kind == "parquet" else {"schema": {"x": to}}

    with pytest.raises(InvalidInputError, match=rf"a\.{kind}: row 2.*"):
        read(kind, f"/a.{kind}", **given)


@pytest.mark.parametrize("text", ["12345678901234567890123456789012345678", "1.5e3", "20000000000000000000"])
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_number_of_text_with_many_digits_is_read_into_a_decimal(
    read: Read, tmp_path: Path, kind: Any, text: str
) -> None:
    (tmp_path / "a").write_text(f"x\n{text}" if kind == "csv" else f'{{"x": {text}}}')

    assert read(kind, schema={"x": "decimal(38, 0)"})["x"].to_pylist() == [Decimal(text)]


@pytest.mark.parametrize("text", ["0xFF", " 0x1f"])
def test_hexadecimal_text_is_no_integer(read: Read, parquet: Callable[..., Path], text: str) -> None:
    parquet({"x": ["1", text]})

    with pytest.raises(InvalidInputError, match=r"row 2, column x: +0x"):
        read(casts={"x": "int8"})


@pytest.mark.parametrize("empty", [b"", b"\n", b"\r\n\n"])
@pytest.mark.parametrize(("kind", "rows"), [("csv", b"n\n1\n"), ("json", b'{"n": 1}\n')])
@pytest.mark.parametrize("schema", [None, {"n": "int64"}])
def test_a_compressed_file_without_content_has_no_rows(
    read: Read, tmp_path: Path, kind: Any, rows: bytes, empty: bytes, schema: Any
) -> None:
    for name, content in (("a", empty), ("b", rows), ("c", empty)):
        (tmp_path / f"{name}.{kind}.gz").write_bytes(gzip.compress(content))

    assert read(kind, schema=schema)["n"].to_pylist() == [1]


def test_files_without_content_alone_tell_no_columns(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b""))

    assert read("csv", schema={"n": "int64"}).num_rows == 0
    with pytest.raises(InvalidInputError, match="all files are empty, so their columns are unknown"):
        read("csv")


def test_a_row_of_json_that_is_null_has_no_value(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbfnull\nnull\r\n{"n": {"x": 1}}\n null \nnull')

    assert read("json")["n"].to_pylist() == [None, None, {"x": 1}, None, None]


def test_types_of_json_are_inferred_from_a_last_line_that_does_not_end(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}\n{"a": 2.5, "b": 1}')

    assert read("json").to_pylist() == [{"a": 1.0, "b": None}, {"a": 2.5, "b": 1}]


def test_a_row_of_json_may_be_null_beside_others_in_a_line(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'null null\n{"n": {"x": 1}} null {"n": {"x": 2}}null')

    assert read("json")["n"].to_pylist() == [None, None, {"x": 1}, None, {"x": 2}, None]


def test_a_null_inside_a_row_of_json_stays_null(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"n": [{"x": 1},\nnull\n], "s": "} null \\"} null"}\nnull')
    schema = {"n": "array<struct<x: int>>", "s": "string"}

    assert read("json", schema=schema).to_pylist() == [
        {"n": [{"x": 1}, None], "s": '} null "} null'},
        {"n": None, "s": None},
    ]


def test_json_with_decimals_is_not_parsed_again_for_the_sake_of_other_text(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text(
        '{"x": 1.25, "id": "3e1f8f60-8d4e-11ef", "s": "1e5 4e3", "day": "2026-11-29"}'
    )
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("parsed again"))

    assert read("json", schema={"x": "decimal(10, 2)", "id": "string"})["x"].to_pylist() == [Decimal("1.25")]


@pytest.mark.parametrize("kind", ["double", "decimal(38, 2)"])
def test_a_row_of_json_may_be_null_beside_large_numbers(read: Read, tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.json").write_text('{"x": 12345678901234567890.5}\nnull')

    found = read("json", schema={"x": kind})["x"].cast(pa.float64()).to_pylist()
    assert found == [12345678901234567890.5, None]


def test_csv_that_is_no_utf_8_is_refused_unless_its_type_is_given(read: Read, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("n,s\n1,é\n".encode("latin-1"))

    with pytest.raises(InvalidInputError, match=r"a\.csv: .*column s: text that isn't UTF-8"):
        read("csv")
    assert read("csv", schema={"s": "binary"})["s"].to_pylist() == [b"\xe9"]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_value_of_text_that_is_no_number_is_named_by_its_row(read: Read, tmp_path: Path, kind: Any) -> None:
    lines = ['{"n": 1}', '{"n": 300}'] if kind == "json" else ["n", "1", "300"]
    (tmp_path / "a").write_text("\n".join(lines))

    with pytest.raises(InvalidInputError, match="/a: row 2"):
        read(kind, schema={"n": "int8"})
