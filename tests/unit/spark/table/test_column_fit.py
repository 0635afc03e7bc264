"""Conversions between all documented types: lossless ones are accepted, all others refused."""

import datetime as dt
import itertools
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.table.column_fit import fits_column, mismatches, schema_mismatch
from airflow_provider_lancens.spark.table.row_casts import conform
from airflow_provider_lancens.spark.type_names import parse_type

PAGE = Path(__file__).parents[4] / "docs" / "types.md"


def documented() -> dict[pa.DataType, frozenset[pa.DataType]]:
    """The documented types of columns that a type can be written to."""
    table = PAGE.read_text().partition("## Columns that widen")[2].partition("\n\n| ")[2].partition("\n\n")[0]
    rows = [re.findall("`([^`]+)`", line) for line in table.splitlines()]
    return {parse_type(row[0], ""): frozenset(parse_type(w, "") for w in row[1:]) for row in rows if row}


WIDENINGS = documented()
SCALARS = sorted({*WIDENINGS, *itertools.chain(*WIDENINGS.values())}, key=str)

_MOMENTS = [dt.datetime(1970, 1, 1), dt.datetime(1677, 9, 22), dt.datetime(2262, 4, 10, 23, 59, 59)]  # noqa: DTZ001
_TIMES = [dt.time(0), dt.time(23, 59, 59)]


def extremes(arrow: pa.DataType) -> list[Any]:
    """The extreme values of a type, which a lossy conversion would lose first."""
    if pa.types.is_integer(arrow):
        signed = pa.types.is_signed_integer(arrow)
        bits = arrow.bit_width - signed
        return [-(2**bits) if signed else 0, 0, 2**bits - 1]
    if pa.types.is_floating(arrow):
        smallest, largest = {16: (2.0**-24, 65504.0), 32: (2.0**-149, 3.4028234663852886e38)}.get(
            arrow.bit_width, (5e-324, 1.7976931348623157e308)
        )
        return [-largest, smallest, float("inf"), 1.5]
    if pa.types.is_decimal(arrow):
        nines = (9,) * arrow.precision
        return [Decimal((sign, nines, -arrow.scale)) for sign in (0, 1)]
    if pa.types.is_timestamp(arrow):
        zone = dt.UTC if arrow.tz else None
        return [moment.replace(tzinfo=zone) for moment in _MOMENTS]
    if pa.types.is_date(arrow):
        return [moment.date() for moment in _MOMENTS]
    if pa.types.is_time(arrow):
        return _TIMES
    if pa.types.is_duration(arrow):
        return [dt.timedelta(days=-3, seconds=1), dt.timedelta(days=100_000)]
    values: dict[Any, list[Any]] = {pa.null(): [], pa.bool_(): [True, False], pa.binary(16): [b"x" * 16]}
    return values.get(arrow, ["", "\u00fcn\u00ef"] if "string" in str(arrow) else [b"", b"\0\xff"])


@pytest.mark.parametrize("given", WIDENINGS, ids=str)
def test_a_column_matches_exactly_the_documented_types(given: pa.DataType) -> None:
    assert {wanted for wanted in SCALARS if fits_column(given, wanted)} == {given, *WIDENINGS[given]}


@pytest.mark.parametrize("given", SCALARS, ids=str)
def test_no_value_is_lost_by_an_accepted_conversion(given: pa.DataType) -> None:
    # Cast, because pyarrow before 21 makes half floats of no Python value.
    column = pa.array([*extremes(given), None], pa.float32() if given == pa.float16() else given).cast(given)
    fitting = [wanted for wanted in SCALARS if fits_column(given, wanted)]

    [widened] = conform(
        [pa.record_batch([column] * len(fitting), names=[str(wanted) for wanted in fitting])],
        pa.schema([(str(wanted), wanted) for wanted in fitting]),
    )

    assert widened.schema.types == fitting
    for result in widened.columns:
        # Values instead of arrays: Arrow can't cast every decimal back.
        same = result if pa.types.is_null(given) or pa.types.is_decimal(result.type) else result.cast(given)
        assert same.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("given", [given for given in SCALARS if given != pa.null()], ids=str)
def test_a_lossy_conversion_is_refused_with_both_types(given: pa.DataType) -> None:
    unfitting = {str(wanted): wanted for wanted in SCALARS if not fits_column(given, wanted)}

    reasons = mismatches(pa.schema(dict.fromkeys(unfitting, given)), pa.schema(unfitting))

    assert reasons == [f"{name} is {given}, but {wanted} in the table" for name, wanted in unfitting.items()]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.list_(pa.float32()), pa.list_(pa.float32(), 768)),
        (pa.list_(pa.int8()), pa.list_(pa.float32(), 768)),
        (pa.list_(pa.float32(), 768), pa.list_(pa.float64(), 768)),
        (pa.list_(pa.int8()), pa.large_list(pa.int16())),
        (pa.large_list(pa.int32()), pa.list_(pa.float64())),
        (pa.list_(pa.null()), pa.list_(pa.string())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
        (pa.map_(pa.string(), pa.null()), pa.map_(pa.string(), pa.int64())),
        (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.float64())])),
        (pa.struct([("x", pa.null())]), pa.struct([("x", pa.list_(pa.string()))])),
        (pa.null(), pa.list_(pa.float32(), 768)),
        (pa.null(), pa.struct([("x", pa.int32())])),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.dictionary(pa.int8(), pa.int32()), pa.decimal128(20, 2)),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Paris")),
    ],
    ids=str,
)
def test_nested_values_are_widened_too(given: pa.DataType, wanted: pa.DataType) -> None:
    assert fits_column(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.list_(pa.int64()), pa.list_(pa.float64())),
        (pa.list_(pa.float64()), pa.list_(pa.float32(), 768)),
        (pa.list_(pa.float32(), 4), pa.list_(pa.float32(), 8)),
        (pa.list_(pa.float32(), 4), pa.list_(pa.float32())),
        (pa.list_(pa.list_(pa.float32())), pa.list_(pa.list_(pa.float32(), 768))),
        (
            pa.struct([("x", pa.int32()), ("y", pa.int32())]),
            pa.struct([("y", pa.int32()), ("x", pa.int32())]),
        ),
        (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int32()), ("y", pa.int32())])),
        (pa.list_(pa.date32()), pa.list_(pa.timestamp("us", "UTC"))),
        (pa.dictionary(pa.int8(), pa.int64()), pa.int32()),
    ],
    ids=str,
)
def test_lossy_conversions_of_nested_values_are_refused(given: pa.DataType, wanted: pa.DataType) -> None:
    assert not fits_column(given, wanted)


def test_a_date_is_not_converted_to_a_timestamp_without_a_time_zone() -> None:
    assert not fits_column(pa.date32(), pa.timestamp("us", "UTC"), time_zone_known=False)
    assert fits_column(pa.date32(), pa.timestamp("us"), time_zone_known=False)


def test_a_null_column_is_refused_for_a_non_nullable_column() -> None:
    existing = pa.schema([pa.field("n", pa.int64(), nullable=False)])

    reasons = mismatches(pa.schema({"n": pa.null()}), existing)

    assert reasons == ["n is null, but the table does not allow nulls there"]


def test_columns_match_by_name_in_any_order() -> None:
    rows = pa.schema([("b", pa.int32()), ("a", pa.int8())])

    assert not mismatches(rows, pa.schema({"a": pa.int8(), "b": pa.int64()}))


def test_a_duplicate_column_is_refused() -> None:
    rows = pa.schema([("a", pa.int8()), ("b", pa.int8()), ("a", pa.int8())])

    assert mismatches(rows, pa.schema({"a": pa.int8(), "b": pa.int8()})) == ["a is in the rows 2 times"]


def test_every_mismatched_column_is_named() -> None:
    frame = pa.schema({"extra": pa.int8(), "wrong": pa.string(), "right": pa.int8()})
    existing = pa.schema({"gone": pa.int8(), "wrong": pa.int8(), "right": pa.int8()})

    message = str(schema_mismatch("db$t", mismatches(frame, existing)))

    assert "table db$t" in message
    assert "gone is missing" in message
    assert "extra is not in the table" in message
    assert "wrong is string, but int8 in the table" in message
    assert "right" not in message
    assert "schema_mode" not in message


def test_a_strict_write_is_told_the_argument_that_lets_columns_differ() -> None:
    message = str(schema_mismatch("db$t", ["extra is not in the table"], may_merge=True))

    assert "or pass schema_mode='merge', which adds the columns that the table lacks" in message
