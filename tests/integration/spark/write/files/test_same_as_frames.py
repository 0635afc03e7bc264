"""Parquet files give the same table as a DataFrame of them: every type that Spark and pyarrow write."""

# ruff: noqa: DTZ001 times of files have no time zone unless they say so

import datetime as dt
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace import DeclareTableRequest, DescribeTableRequest
from lance_namespace.errors import InvalidInputError
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import FileSource, NamespaceSpec
from airflow_provider_lancens.spark.write.files.file_plan import plan
from tests.support.pyarrow_versions import WRITES_OLD_INT96, WRITES_VIEWS
from tests.support.writes import write_files, write_table

Write = Callable[..., pa.Table]

ANCIENT = (
    dt.date(1, 1, 1),
    dt.date(1500, 2, 28),
    dt.date(1500, 3, 1),
    dt.date(1582, 10, 4),
    dt.date(1582, 10, 15),
)
DATES = (*ANCIENT, dt.date(1899, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31))
MODERN = (
    dt.datetime(1900, 1, 1, 1),
    dt.datetime(2024, 3, 10, 2, 30),
    dt.datetime(9999, 12, 30, 23, 59, 59, 999999),
)

PYARROW: dict[str, tuple[list[Any], pa.DataType]] = {
    "bool": ([True, False], pa.bool_()),
    **{f"int{n}": ([-(2 ** (n - 1)), 2 ** (n - 1) - 1], getattr(pa, f"int{n}")()) for n in (8, 16, 32, 64)},
    **{f"uint{n}": ([0, 2**n - 1], getattr(pa, f"uint{n}")()) for n in (8, 16, 32, 64)},
    "float": ([0.1, -0.0, float("inf"), 3.4e38], pa.float32()),
    "double": ([0.1, 5e-324, float("-inf"), 1.7e308], pa.float64()),
    "text": (["", "ünï\U0001f600", "x" * 1000], pa.string()),
    "large_text": (["", "x"], pa.large_string()),
    "text_view": (["", "a text of more than twelve bytes"], pa.string_view()),
    "bytes": ([b"", b"\x00\xff"], pa.binary()),
    "large_bytes": ([b"\x00"], pa.large_binary()),
    "fixed_bytes": ([b"abcd"], pa.binary(4)),
    "dictionary": (["a", "b", "a"], pa.dictionary(pa.int8(), pa.string())),
    "date32": (list(DATES), pa.date32()),
    "date64": ([dt.date(1970, 1, 2)], pa.date64()),
    **{f"naive_{u}": (list(MODERN[:2]), pa.timestamp(u)) for u in ("s", "ms", "us")},
    **{f"zoned_{u}": (list(MODERN[:2]), pa.timestamp(u, "Europe/Paris")) for u in ("s", "ms", "us")},
    "ends": ([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us")),
    **({"decimal32": ([Decimal("9.99")], pa.decimal32(3, 2))} if hasattr(pa, "decimal32") else {}),
    "decimal128": ([Decimal("9" * 38), Decimal(-1)], pa.decimal128(38, 0)),
    "decimal256": ([Decimal("-1.50")], pa.decimal256(20, 2)),
    "list": ([[1, None], []], pa.list_(pa.int32())),
    "required": ([[1, 2], []], pa.list_(pa.field("element", pa.int32(), nullable=False))),
    "large_list": ([[1, None], []], pa.large_list(pa.uint16())),
    "view": ([[1, 2], [], [3]], pa.list_view(pa.int32())),
    "map": ([[("a", 1), ("b", None)], []], pa.map_(pa.string(), pa.uint8())),
    "struct": (
        [{"x": [{"y": 1}], "z": None}],
        pa.struct([("x", pa.list_(pa.struct([("y", pa.uint32())]))), ("z", pa.date32())]),
    ),
    "of_words": ([["a", None]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
}
"""Values by column, which Spark can read too."""
if not WRITES_VIEWS:
    del PYARROW["text_view"], PYARROW["view"]
UNREADABLE: dict[str, tuple[list[Any], pa.DataType]] = {
    "half": ([np.float16(1.5)], pa.float16()),
    "nanoseconds": ([1], pa.timestamp("ns")),
    "zoned_nanoseconds": ([1], pa.timestamp("ns", "UTC")),
    "milliseconds_of_a_day": ([1], pa.time32("ms")),
    "nanoseconds_of_a_day": ([1], pa.time64("ns")),
    "uuid": ([b"0" * 16], pa.binary(16)),
}
"""What Spark refuses, and files keep."""


def table_of(
    columns: dict[str, tuple[list[Any], pa.DataType]], order: random.Random | None = None
) -> pa.Table:
    """A table with each value and nulls, padded with nulls; or with values in random order."""
    longest = 2 + max(len(values) for values, _ in columns.values())
    arrays = {}
    for name, (values, arrow) in columns.items():
        padded = [*values, *[None] * (longest - len(values))]
        if order is not None:
            order.shuffle(padded)
        arrays[name] = pa.array(padded, arrow)
    return pa.table(arrays)


@pytest.fixture
def both(
    spark: SparkSession, spec: NamespaceSpec, tmp_path: Path
) -> Callable[[str], tuple[pa.Table, pa.Table]]:
    """Write a folder of Parquet to a table as files and to another one as a DataFrame."""
    numbers = itertools.count()

    def write(folder: str) -> tuple[pa.Table, pa.Table]:
        found = []
        for way in ("files", "frame"):
            name = f"{way}{next(numbers)}"
            spec.connect().declare_table(DeclareTableRequest(id=[name]))
            if way == "files":
                write_files(spark, FileSource("parquet", folder), spec, name)
            else:
                write_table(spark.read.parquet(folder), spec, name)
            location = spec.connect().describe_table(DescribeTableRequest(id=[name])).location
            found.append(lance.dataset(location).to_table())
        return found[0], found[1]

    return write


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    names = {name: f"spark.sql.{name.replace('__', '.')}" for name in values}
    before = {name: spark.conf.get(name, None) for name in names.values()}
    for short, name in names.items():
        spark.conf.set(name, values[short])
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def assert_same(files: pa.Table, frame: pa.Table) -> None:
    assert files.schema.equals(frame.schema)
    assert [str(f) for f in files.schema] == [str(f) for f in frame.schema]
    key = frame.schema.names[0]
    assert key == "id"
    assert files.sort_by("id").to_pylist() == frame.sort_by("id").to_pylist()


def with_ids(table: pa.Table) -> pa.Table:
    return table.add_column(0, "id", pa.array(range(table.num_rows), pa.int64()))


def test_every_type_of_pyarrow_that_spark_reads_gives_the_same_table(both: Any, tmp_path: Path) -> None:
    pq.write_table(with_ids(table_of(PYARROW)), tmp_path / "a.parquet")

    assert_same(*both(str(tmp_path / "a.parquet")))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        {"version": "1.0"},
        {"version": "2.4", "store_schema": False, "use_dictionary": False},
        {"store_decimal_as_integer": True, "data_page_version": "2.0", "row_group_size": 2},
        {"use_deprecated_int96_timestamps": True},
        {"use_compliant_nested_type": False},
    ],
    ids=str,
)
def test_every_layout_of_pyarrow_gives_the_same_table(both: Any, tmp_path: Path, options: Any) -> None:
    columns = dict(PYARROW)
    if "use_deprecated_int96_timestamps" in options:
        columns.pop("ends")  # pyarrow itself writes them wrongly, and before 23 all times before 1970
        if not WRITES_OLD_INT96:
            columns = {name: one for name, one in columns.items() if not pa.types.is_timestamp(one[1])}
    for seed in range(2):
        rows = with_ids(table_of(columns, random.Random(seed)))
        pq.write_table(rows, tmp_path / f"{seed}.parquet", **options)

        assert_same(*both(str(tmp_path / f"{seed}.parquet")))


@pytest.mark.thorough
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_spark_refuses_is_kept_by_files(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path, name: str
) -> None:
    rows = pa.table({"x": pa.array(*UNREADABLE[name])})
    if name == "uuid":
        rows = pa.table({"x": pa.ExtensionArray.from_storage(pa.uuid(), rows["x"].combine_chunks())})
    pq.write_table(rows, tmp_path / "a.parquet")

    write_files(spark, FileSource("parquet", str(tmp_path / "a.parquet")), spec, table)

    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    stored = lance.dataset(location).to_table()
    assert stored["x"].type == (pa.binary() if name == "uuid" else UNREADABLE[name][1])
    assert stored["x"].to_pylist() == pa.array(*UNREADABLE[name]).to_pylist()


SPARK_COLUMNS = """
    id, cast(id as byte) b, cast(id as short) s, cast(id as int) i, cast(id as float) / 3 f, id / 3 d,
    cast(id as decimal(7, 2)) d7, cast(id as decimal(15, 3)) d15, cast(id as decimal(38, 10)) d38,
    if(id = 1, null, concat('t', id)) t, cast(concat('b', id) as binary) bin, id % 2 = 0 flag, day,
    cast(concat(at, '') as timestamp) at, cast(concat(at, '') as timestamp_ntz) naive,
    array(day, null) days, array(cast(at as timestamp)) times, map('k', cast(at as timestamp)) m,
    named_struct('x', array(named_struct('y', day)), 'z', cast(at as timestamp)) st,
    map(id, id) whole, array(1, 2) required
"""


def rows_of_spark(spark: SparkSession, days: Any, times: Any) -> Any:
    pairs = list(itertools.zip_longest(days, times))
    values = ", ".join(
        f"({i}L, {f'date{str(day)!r}' if day else 'null'}, {str(at) and repr(str(at)) if at else 'null'})"
        for i, (day, at) in enumerate(pairs)
    )
    return spark.sql(f"select {SPARK_COLUMNS} from values {values} as t(id, day, at)").coalesce(1)


@pytest.mark.parametrize(
    ("times", "mode", "zone"),
    [
        ("INT96", "LEGACY", "UTC"),
        *(
            pytest.param(*each, marks=pytest.mark.thorough)
            for each in itertools.product(
                ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"),
                ("CORRECTED", "LEGACY"),
                ("UTC", "America/Los_Angeles", "Asia/Kolkata"),
            )
            if each != ("INT96", "LEGACY", "UTC")
        ),
    ],
)
def test_every_type_of_spark_gives_the_same_table(
    spark: SparkSession, both: Any, tmp_path: Path, times: str, mode: str, zone: str
) -> None:
    folder = str(tmp_path / "written")
    moments = [*MODERN, None]
    if mode == "CORRECTED" or zone == "UTC":
        moments += [dt.datetime(1500, 3, 1, 4, 5, 6), dt.datetime(1850, 6, 7, 8)]
    else:  # the first hours of 1900 are in 1899 in UTC
        moments = [at for at in moments if at is None or at > dt.datetime(1900, 1, 2)]
    with settings(
        spark,
        parquet__outputTimestampType=times,
        parquet__datetimeRebaseModeInWrite=mode,
        parquet__int96RebaseModeInWrite=mode,
        session__timeZone=zone,
    ):
        rows_of_spark(spark, DATES, moments).write.parquet(folder)
        files, frame = both(folder)

    assert_same(files, frame)


@pytest.mark.thorough
def test_old_times_of_another_zone_are_refused_rather_than_guessed(
    spark: SparkSession, spec: NamespaceSpec, table: str, tmp_path: Path
) -> None:
    folder = str(tmp_path / "written")
    with settings(
        spark,
        parquet__outputTimestampType="TIMESTAMP_MICROS",
        parquet__datetimeRebaseModeInWrite="LEGACY",
        session__timeZone="Asia/Kolkata",
    ):
        spark.sql("select timestamp'1500-03-01 00:00:00' at").write.parquet(folder)

    with pytest.raises(
        InvalidInputError, match=r"\.parquet: row 1, column at: .*not known in which calendar"
    ):
        write_files(spark, FileSource("parquet", folder), spec, table)


FOLDERS: list[list[str]] = [
    ["1", "2"],
    ["1", "2147483648"],
    ["007", "-1"],
    ["1", "1.5"],
    ["1", "99999999999"],
    ["9223372036854775808", "1"],
    ["1.5", "99999999999"],
    ["1e5", "2"],
    ["1e5", "0.5"],
    ["NaN", "1.0"],
    ["1d", "2f"],
    ["2026-11-01", "2026-11-02"],
    ["2026-11-01", "2026-11-02 03:04:05"],
    ["2026-11-01 03:04:05.123456", "2026-11-01 03:04:05"],
    ["2026-11-01", "1"],
    ["2026-13-01", "2026-11-01"],
    ["2026-1-1", "2026-11-01"],
    ["a b", "a/b=c%d"],
    ["true", "false"],
    ["1", "__HIVE_DEFAULT_PARTITION__"],
    ["__HIVE_DEFAULT_PARTITION__"],
    ["1", "x"],
    ["", "+5"][1:],
    [" 1", "2"],
    ["0x10", "1"],
    ["99999999999999999999999999999999999999", "1"],
    ["999999999999999999999999999999999999999", "1"],
]


@pytest.mark.thorough
def test_folders_are_columns_as_spark_infers_them(spark: SparkSession, tmp_path: Path) -> None:
    different = {}
    with settings(spark, session__timeZone="America/Los_Angeles"):
        for number, values in enumerate(FOLDERS):
            for value in values:
                folder = tmp_path / str(number) / f"p={quote(value, safe=' ')}"
                folder.mkdir(parents=True)
                pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
            frame = spark.read.parquet(str(tmp_path / str(number))).select("p")
            wanted = frame.toArrow() if hasattr(frame, "toArrow") else None
            source = FileSource("parquet", str(tmp_path / str(number)))
            planned = plan(source, {}, zone="America/Los_Angeles")
            found = [each.values[0] for each in planned.units]
            column = planned.partitions.field("p")
            if wanted is not None:
                expected = pa.array(wanted["p"].to_pylist(), wanted.schema.field("p").type)
                ours = pa.array(found, column.type)
                same = str(column.type).replace("America/Los_Angeles", "UTC") == str(expected.type).replace(
                    "America/Los_Angeles", "UTC"
                ) and sorted(map(str, ours.cast(expected.type).to_pylist())) == sorted(
                    map(str, expected.to_pylist())
                )
                if not same:
                    different[str(values)] = (
                        str(column.type),
                        ours.to_pylist(),
                        str(expected.type),
                        expected.to_pylist(),
                    )

    assert different == {}


@pytest.mark.thorough
def test_files_and_frames_append_to_each_others_tables(
    spark: SparkSession, spec: NamespaceSpec, tmp_path: Path
) -> None:
    folder = str(tmp_path / "written")
    rows_of_spark(spark, DATES[-2:], MODERN).write.parquet(folder)
    frame = spark.read.parquet(folder)
    for first in ("files", "frame"):
        spec.connect().declare_table(DeclareTableRequest(id=[first]))
        for way in (first, "files", "frame"):
            if way == "files":
                write_files(spark, FileSource("parquet", folder), spec, first)
            else:
                write_table(frame, spec, first)
        location = spec.connect().describe_table(DescribeTableRequest(id=[first])).location
        assert lance.dataset(location).count_rows() == 9


@pytest.mark.thorough
def test_a_null_where_an_old_table_requires_values_is_refused_with_its_row(
    spark: SparkSession, spec: NamespaceSpec, table: str
) -> None:
    location = spec.connect().describe_table(DescribeTableRequest(id=[table])).location
    schema = pa.schema(
        [
            ("l", pa.list_(pa.field("element", pa.int32(), nullable=False))),
            ("m", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
            ("s", pa.struct([pa.field("x", pa.int32(), nullable=False)])),
        ]
    )
    rows = [{"l": [1], "m": [("k", 1)], "s": {"x": 1}}]
    lance.write_dataset(pa.Table.from_pylist(rows, schema=schema), location, data_storage_version="2.2")

    write_table(spark.sql("select array(1, 2) l, map('k', 2L) m, named_struct('x', 2) s"), spec, table)

    assert lance.dataset(location).count_rows() == 2
    for column, sql in (
        ("l", "array(1, null) l, map('k', 2L) m, named_struct('x', 2) s"),
        ("m", "array(1) l, map('k', cast(null as long)) m, named_struct('x', 2) s"),
        ("s", "array(1) l, map('k', 2L) m, named_struct('x', cast(null as int)) s"),
    ):
        with pytest.raises(InvalidInputError, match=f"row 1, column {column}: "):
            write_table(spark.sql(f"select {sql}"), spec, table)
