"""Tables as DuckDB reads them: rows, types and conditions as of the same rows in DuckDB's own table."""

from contextlib import nullcontext
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_lancens.sql.table_scan import TableScan, readable

COUNT = 300
START = datetime(2026, 1, 1)  # noqa: DTZ001 of columns without time zone too
TIMES = [START + timedelta(hours=number) for number in range(COUNT)]
SIMPLE: dict[str, pa.Array] = {
    "id": pa.array(range(COUNT), pa.int64()),
    "amount": pa.array([Decimal(number) / 100 for number in range(COUNT)], pa.decimal128(9, 2)),
    "moment": pa.array(TIMES, pa.timestamp("us", "UTC")),
    "day": pa.array([value.date() for value in TIMES]),
    "text": pa.array([f"x{number}" if number % 7 else None for number in range(COUNT)]),
    "yes": pa.array([number % 3 == 0 for number in range(COUNT)]),
    "number": pa.array([number / 3 if number % 5 else None for number in range(COUNT)]),
    "place": pa.array([{"a": number, "b": "q"} for number in range(COUNT)]),
    "tags": pa.array([["a", "b"], None, []] * (COUNT // 3)),
}
ODD: dict[str, pa.Array] = {
    "big": pa.array(range(COUNT), pa.uint64()),
    "bytes": pa.array([b"xx"] * COUNT),
    "word": pa.array(["a", "b"] * (COUNT // 2)).dictionary_encode(),
    "long": pa.array(["x"] * COUNT, pa.large_string()),
    "nanos": pa.array(TIMES, pa.timestamp("ns")),
    "millis": pa.array(TIMES, pa.timestamp("ms")),
    "took": pa.array([timedelta(seconds=number) for number in range(COUNT)], pa.duration("us")),
    "clock": pa.array([time(number % 24) for number in range(COUNT)], pa.time64("us")),
    "small": pa.array([number % 100 for number in range(COUNT)], pa.int8()),
}
CONDITIONS = [
    "amount > 1.5", "amount = 1.5", "day = '2026-01-05'", "day >= DATE '2026-01-05' AND day < '2026-01-09'",
    "moment > '2026-01-05'", "moment = TIMESTAMPTZ '2026-01-01 03:00:00+02'", "text IS NULL", "text > 'x5'",
    "text IS NOT NULL AND text <> 'x1'", "text IN ('x1', 'x2') OR id = 5", "id IN (1, 2, 3)",
    "text LIKE 'x1%'", "yes", "NOT yes", "number IS DISTINCT FROM 2", "number > 50", "place.a > 290",
    "id BETWEEN 5 AND 10 AND amount < 0.08", "id <> 5", "id % 2 = 0", "tags IS NULL",
    "list_contains(tags, 'a')", "amount::DOUBLE = 1.5", "id = (SELECT max(id) FROM t)",
    "id > 290 OR text IS NULL",
]  # fmt: skip
ODD_CONDITIONS = [
    "big > 290", "bytes = 'xx'::BLOB", "word = 'a'", "long = 'x'", "nanos > '2026-01-05'",
    "took > INTERVAL 1 MINUTE",
    "millis > '2026-01-05'", "clock > '12:00:00'", "small = 5 AND word = 'b'", "id IN (5, 6) AND long = 'x'",
]  # fmt: skip


def scanned(rows: pa.Table, folder: Path) -> TableScan:
    return TableScan(lance.write_dataset(rows, folder / "t.lance"), nullcontext)


@pytest.mark.parametrize("condition", [*CONDITIONS, *ODD_CONDITIONS])
@pytest.mark.parametrize("indexed", [False, True])
def test_conditions_select_the_rows_that_they_select_in_duckdb(
    tmp_path: Path, condition: str, indexed: bool
) -> None:
    odd = condition in ODD_CONDITIONS
    rows = pa.table({**SIMPLE, **ODD} if odd else SIMPLE)
    if indexed:
        dataset = lance.write_dataset(rows, tmp_path / "t.lance")
        for column in ("id", "text"):
            dataset.create_scalar_index(column, "BTREE")
    scan = scanned(rows, tmp_path) if not indexed else TableScan(dataset, nullcontext)

    with duckdb.connect(":memory:", config={"threads": 2}) as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        connection.register("t", scan)
        connection.register("rows", rows)
        connection.execute("CREATE TABLE own AS FROM rows").fetchall()
        query = "SELECT count(*), sum(id), min(text) FROM {} WHERE " + condition
        [found] = connection.execute(query.format("t")).fetchall()
        [expected] = connection.execute(query.format("own")).fetchall()

    assert found == expected
    assert scan.failure is None


def test_lance_filters_what_it_can_evaluate(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table(SIMPLE), tmp_path / "t.lance")
    dataset.create_scalar_index("id", "BTREE")
    scan, asked = TableScan(dataset, nullcontext), list[Any]()
    scanner = dataset.scanner
    dataset.scanner = lambda **options: asked.append(options) or scanner(**options)

    rows = scan.scanner(["text"], pc.field("id") == 5).to_reader().read_all()

    assert rows.to_pydict() == {"text": ["x5"]}
    assert len(asked) == 1
    assert "ScalarIndexQuery" in scanner(**asked[0]).explain_plan()


def test_all_columns_are_read_as_they_are(tmp_path: Path) -> None:
    scan = scanned(pa.table({**SIMPLE, **ODD}), tmp_path)

    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        connection.register("t", scan)
        [row] = connection.execute("SELECT * FROM t WHERE id = 4").fetchall()

    values: dict[str, Any] = dict(zip(scan.schema.names, row, strict=True))
    assert values["amount"] == Decimal("0.04")
    assert values["moment"] == datetime(2026, 1, 1, 4, tzinfo=UTC)
    assert values["day"] == date(2026, 1, 1)
    assert (values["place"], values["tags"], values["word"]) == ({"a": 4, "b": "q"}, None, "a")
    assert (values["took"], values["clock"], values["bytes"]) == (timedelta(seconds=4), time(4), b"xx")


def test_half_floats_and_vectors_are_read_and_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(1, 5, dtype=np.float16)), 2)
    rows = pa.table(
        {
            "half": pa.array(np.array([0.5, 1.5], np.float16)),
            "vector": vectors,
            "fits": pa.array([Decimal(1), None], pa.decimal256(38, 2)),
            "wide": pa.array([Decimal(1), None], pa.decimal256(50, 2)),
        }
    )
    scan = scanned(rows, tmp_path)

    with duckdb.connect(":memory:") as connection:
        connection.register("t", scan)
        found = connection.execute("SELECT half, vector, fits FROM t WHERE half > 1").fetchall()

    assert found == [(1.5, (3.0, 4.0), None)]
    assert scan.unreadable == ["wide"]


def test_blobs_are_left_out(tmp_path: Path) -> None:
    blob = pa.field("file", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), blob])
    scan = scanned(pa.table([[1], [b"xx"]], schema=schema), tmp_path)

    assert (scan.schema.names, scan.unreadable) == (["id"], ["file"])


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.list_(pa.float16()), pa.list_(pa.float32())),
        (pa.struct({"a": pa.float16(), "b": pa.int8()}), pa.struct({"a": pa.float32(), "b": pa.int8()})),
        (pa.struct({"a": pa.decimal256(60)}), None),
        (pa.map_(pa.string(), pa.float16()), pa.map_(pa.string(), pa.float32())),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.uuid(), pa.binary(16)),
        (pa.string_view(), pa.string()),
        (pa.month_day_nano_interval(), None),
        (pa.run_end_encoded(pa.int32(), pa.int8()), None),
    ],
)
def test_types_have_a_type_as_which_they_are_read(arrow: pa.DataType, expected: pa.DataType | None) -> None:
    assert readable(arrow) == expected


def test_the_first_error_of_reading_is_kept(tmp_path: Path) -> None:
    scan = scanned(pa.table({"a": pa.array([1, 2])}), tmp_path)
    for file in (tmp_path / "t.lance" / "data").iterdir():
        file.unlink()

    with duckdb.connect(":memory:") as connection:
        connection.register("t", scan)
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT sum(a) FROM t").fetchall()

    assert "Not found" in str(scan.failure) or "not found" in str(scan.failure)
