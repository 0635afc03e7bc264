"""Lance, Arrow and Spark pick the same rows for random conditions on columns of all types."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.conditions import Condition, parse_condition
from tests.unit.conditions.generated import LANCE_ALONE, Conditions, Row, python_rows, rows

_IN_ONE_JOB = 200


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        pytest.param(2, 400, marks=pytest.mark.thorough),
        pytest.param(3, 10_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_lance_arrow_and_spark_pick_the_same_rows(
    spark: SparkSession, tmp_path: Path, seed: int, count: int
) -> None:
    table = rows()
    plain = python_rows(table)
    dataset = lance.write_dataset(table, tmp_path / "t")
    frame = _frame(spark, table, tmp_path / "rows.parquet")
    for start in range(0, count, _IN_ONE_JOB):
        _compare(dataset, frame, table, plain, seed * 1_000_000 + start)


def _compare(
    dataset: lance.LanceDataset, frame: DataFrame, table: pa.Table, plain: list[Row], seed: int
) -> None:
    # Spark has no nanoseconds; the rows have none either, but conditions do.
    index = table.schema.get_field_index("ts_ns")
    in_spark = table.schema.set(index, pa.field("ts_ns", pa.timestamp("us")))
    conditions: list[tuple[Condition, list[bool | None]]] = []
    for number in range(_IN_ONE_JOB):
        made = Conditions(table.schema, seed + number)
        text, meaning = made.condition()
        condition, expected = parse_condition(text, table.schema), [meaning(row) for row in plain]
        assert condition.mask(table).to_pylist() == expected, text
        found = dataset.to_table(columns=["row"], filter=condition.lance_sql)["row"].to_pylist()
        assert found == [row for row, matches in enumerate(expected) if matches], (text, condition.lance_sql)
        if not made.used & LANCE_ALONE:
            conditions.append((parse_condition(text, in_spark), expected))
    names = [f"c{number}" for number in range(len(conditions))]
    asked = [f"{one.spark_sql} AS {name}" for (one, _), name in zip(conditions, names, strict=True)]
    answers: list[Any] = sorted(frame.selectExpr("row", *asked).collect())
    for (condition, expected), name in zip(conditions, names, strict=True):
        assert [row[name] for row in answers] == expected, (condition.text, condition.spark_sql)


def _frame(spark: SparkSession, table: pa.Table, path: Path) -> DataFrame:
    """Return the rows as Spark gets them, without the columns that it has no types for."""
    columns = {
        name: table[name].cast(_for_spark(table.schema.field(name).type))
        for name in table.column_names
        if name not in LANCE_ALONE
    }
    pq.write_table(pa.table(columns), path, coerce_timestamps="us")
    return spark.read.parquet(str(path)).cache()


def _for_spark(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(arrow):
        return arrow.value_type
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", arrow.tz)
    replaced = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
        pa.binary(2): pa.binary(),
    }
    return replaced.get(arrow, arrow)
