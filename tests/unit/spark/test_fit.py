import pyarrow as pa
import pytest
from lance_namespace.errors import TableSchemaValidationError

from airflow_provider_lancens.spark.fit import check_fit, fits_column


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.int32(), pa.int32()),
        (pa.int8(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.string(), pa.large_string()),
        (pa.binary(), pa.large_binary()),
        (pa.decimal128(5, 2), pa.decimal128(7, 3)),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
        (pa.list_(pa.float32()), pa.list_(pa.float32(), 768)),
        (pa.list_(pa.int8()), pa.large_list(pa.int16())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
        (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int64())])),
    ],
    ids=str,
)
def test_a_type_fits_where_every_value_does(given: pa.DataType, wanted: pa.DataType) -> None:
    assert fits_column(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.int32(), pa.float64()),
        (pa.string(), pa.int32()),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.list_(pa.float64()), pa.list_(pa.float32(), 768)),
        (pa.list_(pa.list_(pa.float32())), pa.list_(pa.list_(pa.float32(), 768))),
        (
            pa.struct([("x", pa.int32()), ("y", pa.int32())]),
            pa.struct([("y", pa.int32()), ("x", pa.int32())]),
        ),
        (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int32()), ("y", pa.int32())])),
    ],
    ids=str,
)
def test_a_type_that_could_lose_something_does_not_fit(given: pa.DataType, wanted: pa.DataType) -> None:
    assert not fits_column(given, wanted)


def test_columns_match_by_name_in_any_order() -> None:
    check_fit(
        "t", pa.schema([("b", pa.int32()), ("a", pa.int8())]), pa.schema({"a": pa.int8(), "b": pa.int64()})
    )


def test_the_refusal_names_every_column_that_does_not_fit() -> None:
    frame = pa.schema({"extra": pa.int8(), "wrong": pa.string(), "right": pa.int8()})
    existing = pa.schema({"gone": pa.int8(), "wrong": pa.int8(), "right": pa.int8()})

    with pytest.raises(TableSchemaValidationError) as refusal:
        check_fit("db$t", frame, existing)

    message = str(refusal.value)
    assert "table db$t" in message
    assert "gone is missing" in message
    assert "extra isn't in the table" in message
    assert "wrong is string, the table has int8" in message
    assert "right" not in message
