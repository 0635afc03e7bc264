"""Rows of all types."""

import datetime as dt
from decimal import Decimal
from typing import Any

from pyspark.sql import types as t

at = dt.datetime.fromisoformat


NESTED = t.StructType(
    [
        t.StructField("amount", t.DecimalType(10, 2)),
        t.StructField("tags", t.ArrayType(t.StringType())),
        t.StructField("inner", t.StructType([t.StructField("at", t.TimestampType())])),
    ]
)


VALUES: list[tuple[t.DataType, list[Any]]] = [
    (t.BooleanType(), [True, False]),
    (t.ByteType(), [-128, 127]),
    (t.ShortType(), [-(2**15), 2**15 - 1]),
    (t.IntegerType(), [-(2**31), 2**31 - 1]),
    (t.LongType(), [-(2**63), 2**63 - 1]),
    (t.FloatType(), [0.0, -1.5, float("inf"), 1.1754943508222875e-38]),
    (t.DoubleType(), [0.0, -1.7976931348623157e308, float("-inf"), 5e-324]),
    (t.StringType(), ["", "plain", "ünï\U0001f600", "x" * 100_000]),
    (t.BinaryType(), [bytearray(b""), bytearray(range(256))]),
    (t.DecimalType(3, 2), [Decimal("9.99"), Decimal("-0.01")]),
    (t.DecimalType(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1)]),
    (t.DecimalType(38, 38), [Decimal("0." + "9" * 38)]),
    (t.DateType(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    (t.TimestampType(), [at("1969-12-31T23:59:59.999999"), at("2100-07-01T12:00")]),
    (t.TimestampNTZType(), [at("1582-10-04"), at("9999-12-31T23:59:59.999999")]),
    (t.DayTimeIntervalType(), [dt.timedelta(days=-3, microseconds=1), dt.timedelta(hours=25)]),
    (t.ArrayType(t.LongType()), [[], [1, None, 3]]),
    (t.ArrayType(t.ArrayType(t.StringType())), [[["a"], [], None]]),
    (t.ArrayType(t.DecimalType(12, 4)), [[Decimal("1.2345"), None], []]),
    (t.MapType(t.StringType(), t.LongType()), [{}, {"a": 1, "b": None}]),
    (t.MapType(t.StringType(), t.DecimalType(10, 2)), [{"a": Decimal("1.50")}]),
    (t.MapType(t.LongType(), t.ArrayType(t.FloatType())), [{7: [0.5]}]),
    (NESTED, [(Decimal("1.50"), ["x", None], (at("2020-01-01"),)), (None, None, None)]),
    (t.ArrayType(NESTED), [[(Decimal("0.01"), [], None), None]]),
    (t.NullType(), []),
]


SCHEMA = t.StructType([t.StructField(f"c{number}", value[0]) for number, value in enumerate(VALUES)])
