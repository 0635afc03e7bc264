"""Rows in the memory of a plain task are written without Spark, like the rows of a DataFrame."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lance_namespace.errors import (
    InvalidInputError,
    TableSchemaValidationError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens import LanceCatalog, Table, WriteIdentity, connect
from airflow_provider_lancens.spark.write.row_sources import ArrowRows, SourceRowsError

ROWS = pa.table({"id": [1, 2], "day": ["2026-11-01", "2026-11-02"]})


class Stream:
    """What another library exports: a stream, and nothing else."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.rows.__arrow_c_stream__(requested_schema)


@pytest.fixture
def lake(tmp_path: Any) -> LanceCatalog:
    return connect("dir", {"root": str(tmp_path)})


@pytest.fixture
def orders(lake: LanceCatalog) -> Table:
    return lake.declare_table("orders")


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])


def test_the_example_of_the_page_runs(tmp_path: Any) -> None:
    folder = str(tmp_path)
    # [START rows_in_memory]
    import pyarrow as pa

    from airflow_provider_lancens import connect

    scores = connect("dir", {"root": folder}).declare_table("scores")
    scores.append(pa.table({"id": [1, 2], "score": [0.5, 0.7]}), key="scores of 2026-11-01")
    scores.upsert(pa.Table.from_pylist([{"id": 2, "score": 0.9}, {"id": 3, "score": 0.1}]), on=["id"])
    assert scores.count_rows(filter="score > 0.4") == 2
    # [END rows_in_memory]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_reader(),
        pd.DataFrame({"id": [1, 2], "day": ["2026-11-01", "2026-11-02"]}, index=["a", "b"]),
        pl.DataFrame({"id": [1, 2], "day": ["2026-11-01", "2026-11-02"]}),
        pl.DataFrame(
            {"id": [1, 2], "day": ["2026-11-01", "2026-11-02"]}, schema_overrides={"day": pl.Categorical}
        ),
        pl.LazyFrame({"id": [1, 2], "day": ["2026-11-01", "2026-11-02"]}).collect_batches(chunk_size=1),
        Stream(ROWS),
        pa.table({"id": ROWS["id"], "day": ROWS["day"].cast(pa.string_view())}),
        pa.table({"id": ROWS["id"], "day": ROWS["day"].dictionary_encode()}),
    ],
    ids=[
        "table",
        "batch",
        "reader",
        "pandas",
        "polars",
        "polars, categorical",
        "polars, lazy",
        "stream",
        "views",
        "dictionary",
    ],
)
def test_rows_of_any_kind_are_written_as_the_same_columns(orders: Table, rows: Any) -> None:
    result = orders.append(rows)

    assert (result.version, result.written) == (1, 2)
    assert orders.schema == pa.schema([("id", pa.int64()), ("day", pa.string())])
    assert rows_of(orders) == ROWS.to_pylist()


def test_the_batches_of_a_lazy_frame_are_not_held_in_memory(orders: Table) -> None:
    rows = ArrowRows.of(pl.LazyFrame({"id": [1, 2]}).collect_batches())

    assert isinstance(rows.rows, pa.RecordBatchReader)


def test_a_lazy_frame_is_refused_with_what_to_pass(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match=r"got a LazyFrame; pass its collect_batches\(\)"):
        orders.append(pl.LazyFrame({"id": [1, 2]}))


def test_a_table_is_read_as_a_polars_frame(orders: Table) -> None:
    orders.append(ROWS)

    found = orders.to_polars(filter="id = 2")

    assert isinstance(found, pl.DataFrame)
    assert found.rows() == [(2, "2026-11-02")]


def test_a_key_is_written_once(orders: Table) -> None:
    first = orders.append(ROWS, key="one")
    again = orders.append(ROWS, key=WriteIdentity("one", on_existing_key="skip"))

    assert (first.is_done, again.is_done, again.version) == (True, False, 1)
    assert orders.count_rows() == 2


def test_rows_are_replaced_by_a_condition_that_all_new_ones_must_match(orders: Table) -> None:
    orders.append(ROWS)
    orders.overwrite(pa.table({"id": [7], "day": ["2026-11-02"]}), where="day = '2026-11-02'")

    assert [row["id"] for row in rows_of(orders)] == [1, 7]
    with pytest.raises(InvalidInputError, match="where: rows that don't match"):
        orders.overwrite(ROWS, where="day = '2026-11-02'")
    assert orders.version == 2


def test_rows_are_inserted_and_updated_by_their_keys(orders: Table) -> None:
    orders.append(ROWS)
    orders.upsert(pa.table({"day": ["new", "2026-12-01"], "id": [3, 2]}), on=["id"])

    assert [(row["id"], row["day"]) for row in rows_of(orders)] == [
        (1, "2026-11-01"),
        (2, "2026-12-01"),
        (3, "new"),
    ]
    with pytest.raises(InvalidInputError, match="1 keys are in more than one row"):
        orders.upsert(pa.table({"id": [1, 1], "day": ["a", "b"]}), on=["id"])


def test_a_staged_version_has_the_rows_and_is_published(orders: Table, lake: LanceCatalog) -> None:
    orders.append(ROWS)
    staged = orders.append(pa.table({"id": [3], "day": ["2026-11-03"]}), stage=True)

    assert orders.count_rows() == 2
    assert (staged.version, staged.outcome) == (None, "staged")
    assert lake.table(staged).count_rows() == 3  # type: ignore[arg-type]
    assert orders.at(staged.staged_version).count_rows() == 3
    orders.publish(staged)
    assert orders.count_rows() == 3


@pytest.mark.parametrize("on", [None, ["id"]])
def test_a_cleared_task_without_rows_discards_what_it_had_staged(orders: Table, on: list[str] | None) -> None:
    orders.append(ROWS)

    def staged(rows: pa.Table, execution: str) -> Any:
        key = WriteIdentity("november", execution_id=execution)
        if on is None:
            return orders.append(rows, stage=True, key=key)
        return orders.upsert(rows, on, stage=True, key=key)

    first = staged(pa.table({"id": [3], "day": ["2026-11-03"]}), "first")
    cleared = staged(ROWS.slice(0, 0), "cleared")

    assert (cleared.outcome, cleared.staged_version) == ("unchanged", None)
    with pytest.raises(TableVersionNotFoundError, match="was discarded"):
        orders.publish(first)
    assert orders.count_rows() == 2


def test_new_columns_are_merged(orders: Table) -> None:
    orders.append(ROWS)
    orders.append(pa.table({"id": [3], "amount": [1.5]}), schema_mode="merge")

    assert rows_of(orders)[2] == {"id": 3, "day": None, "amount": 1.5}


def test_values_keep_what_they_are(orders: Table) -> None:
    moment = dt.datetime(2026, 11, 1, 12, 30, tzinfo=dt.UTC)
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.uint8()),
            "at": pa.array([moment, None], pa.timestamp("ms", "Europe/Berlin")),
            "price": pa.array([Decimal("1.50"), None]),
            "tags": [["a", None], []],
            "point": [{"x": 1.0, "y": None}, None],
            "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
        }
    )
    orders.append(rows)

    assert orders.schema.field("id").type == pa.int16()  # as Spark reads it
    assert orders.schema.field("at").type == pa.timestamp("us", "UTC")
    assert orders.schema.field("vector").type == pa.list_(pa.float32(), 2)
    written = rows_of(orders)
    assert written == [{**row, "at": row["at"] and moment} for row in rows.to_pylist()]


def test_what_pandas_has_no_value_for_is_null(orders: Table) -> None:
    orders.append(pd.DataFrame({"id": [1, 2], "amount": [float("nan"), 2.0], "day": [None, "x"]}))

    assert orders.count_rows(filter="amount IS NULL AND day IS NULL") == 1


def test_rows_without_any_create_the_data_once(orders: Table) -> None:
    assert orders.append(ROWS.slice(0, 0)).version == 1
    assert orders.append(ROWS.slice(0, 0)).version == 1
    assert (orders.schema.names, orders.count_rows()) == (["id", "day"], 0)


def test_more_rows_than_one_batch_holds_are_all_written(orders: Table) -> None:
    count = 100_000
    text = "x" * 1_000
    orders.append(pa.table({"id": pa.array(range(count)), "day": pa.repeat(text, count)}))

    assert orders.count_rows(filter=f"day = '{text}'") == count


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (pa.table({"id": [3]}), TableSchemaValidationError, "day is missing in the rows"),
        (pa.table({"id": ["x"], "day": ["y"]}), TableSchemaValidationError, "id is string, but int64 in the"),
        (pa.table({"id": [1]}).select([]), TableSchemaValidationError, "id is missing"),
        (pd.DataFrame({"id": [1, "a"]}), InvalidInputError, "rows: they can't be made Arrow columns: .*id"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(
    orders: Table, rows: Any, error: type[Exception], message: str
) -> None:
    orders.append(ROWS)
    with pytest.raises(error, match=message):
        orders.append(rows)
    assert orders.version == 1


def test_a_value_that_does_not_fit_is_named_by_its_row_and_column(orders: Table) -> None:
    orders.append(pa.table({"id": pa.array([1], pa.int64()), "at": pa.array([0], pa.timestamp("us"))}))
    rows = pa.table({"id": [1, 2], "at": pa.array([1_000, 1], pa.timestamp("ns"))})
    with pytest.raises(InvalidInputError, match="rows: row 2, column at"):
        orders.append(rows)
    assert orders.version == 1


@pytest.mark.parametrize("batches", [0, 1])
@pytest.mark.parametrize("error", [ValueError("a test"), OSError(28, "a test"), KeyError("a test")])
@pytest.mark.parametrize("options", [None, {"on": ["id"]}])
def test_an_error_of_the_rows_is_not_taken_for_one_of_the_storage(
    orders: Table, error: Exception, batches: int, options: dict[str, Any] | None
) -> None:
    orders.append(ROWS)

    def failing() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches() * batches
        raise error

    rows = pa.RecordBatchReader.from_batches(ROWS.schema, failing())
    with pytest.raises(SourceRowsError, match=r"^rows: they could not be read to their end: .*a test'?$"):
        orders.append(rows) if options is None else orders.upsert(rows, **options)
    assert orders.version == 1


@pytest.mark.parametrize(
    "options",
    [
        {"sequence_by": "day"},
        {"delete_when": "day = 'x'"},
        {"when_matched": "keep"},
        {"update_columns": ["day"]},
    ],
)
def test_an_upsert_that_compares_rows_names_what_to_do(orders: Table, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"not allowed for rows in memory.*spark\.createDataFrame"):
        orders.upsert(ROWS, on=["id"], **options)


def test_the_digest_of_rows_does_not_depend_on_their_order_and_tells_values_apart() -> None:
    from airflow_provider_lancens.spark.write.row_sources import ArrowRows

    def digest(rows: Any) -> str | None:
        return ArrowRows.of(rows).digest()

    assert digest(ROWS) == digest(ROWS.take([1, 0])) == digest(ROWS.to_pandas())
    assert digest(ROWS) != digest(ROWS.slice(1))
    assert digest(ROWS) != digest(ROWS.set_column(1, "day", pa.array(["2026-11-01", None])))
    assert digest(ROWS) != digest(ROWS.rename_columns(["number", *ROWS.column_names[1:]]))
    assert digest(ROWS) != digest(ROWS.append_column("more", pa.nulls(ROWS.num_rows)))
    assert digest(ROWS.to_reader()) is None


@pytest.mark.parametrize(
    ("layout", "value"),
    [({"blob_columns": ["x"]}, b"value"), ({"vector_columns": {"x": 2}}, [0.5, 1.5])],
)
@pytest.mark.parametrize("change", ["renamed", "dropped", "kept"])
def test_rows_may_lack_a_declared_column_that_was_renamed_or_dropped(
    lake: LanceCatalog, layout: dict[str, Any], value: Any, change: str
) -> None:
    lake.create_namespace("db")
    table = lake.declare_table("db.t", layout=layout)
    kind = pa.binary() if isinstance(value, bytes) else pa.list_(pa.float32())
    table.append(pa.table({"id": [1], "x": pa.array([value], kind)}))
    stored = table.schema.field("x").type
    if change == "renamed":
        table.alter_columns(rename={"x": "y"})
    elif change == "dropped":
        table.drop_columns(["x"])

    table.append(pa.table({"id": [2], "n": [2]}), schema_mode="merge")
    table.upsert(pa.table({"id": [3]}), ["id"], schema_mode="merge")
    table.overwrite(pa.table({"id": [4]}), where="id = 4", schema_mode="merge")
    if change == "renamed":
        table.append(pa.table({"id": [5], "y": pa.array([value], kind)}), schema_mode="merge")
        assert table.schema.field("y").type == stored
        table.overwrite(pa.table({"id": [5], "n": [5], "y": pa.array([value], kind)}))
        assert table.schema.field("y").type == stored
    table.overwrite(pa.table({"id": [6]}), schema_mode="overwrite")

    assert table.to_arrow().to_pylist() == [{"id": 6}]
    with pytest.raises(InvalidInputError, match=r"there is no such column|the rows have no column 'x'"):
        lake.declare_table("db.other", layout=layout).append(pa.table({"id": [1]}))  # its first rows


def test_a_blob_is_no_key(lake: LanceCatalog) -> None:
    lake.create_namespace("db")
    table = lake.declare_table("db.t", layout={"blob_columns": ["x"]})
    rows = pa.table({"id": [1], "x": pa.array([b"value"], pa.binary())})
    table.append(rows)

    for write in (table.upsert, table.overwrite):
        with pytest.raises(InvalidInputError, match=r"column 'x' is .*, which cannot be a key"):
            write(rows, on=["x"])
