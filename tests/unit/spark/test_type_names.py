import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.type_names import parse_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int64", pa.int64()),
        ("bigint", pa.int64()),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("timestamp[us]", pa.timestamp("us")),
        ("timestamp[us, UTC]", pa.timestamp("us", "UTC")),
        ("timestamp[ns,Europe/Berlin]", pa.timestamp("ns", "Europe/Berlin")),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("list<list<string>>", pa.list_(pa.list_(pa.string()))),
        ("array<int>", pa.list_(pa.int32())),
        ("float[768]", pa.list_(pa.float32(), 768)),
        ("timestamp[us][2]", pa.list_(pa.timestamp("us"), 2)),
        ("map<string, decimal(10, 2)>", pa.map_(pa.string(), pa.decimal128(10, 2))),
        (
            "struct<unit price: double, in: struct<at: timestamp[us, UTC], v: float[2]>>",
            pa.struct(
                [
                    ("unit price", pa.float64()),
                    ("in", pa.struct([("at", pa.timestamp("us", "UTC")), ("v", pa.list_(pa.float32(), 2))])),
                ]
            ),
        ),
    ],
)
def test_type_names_are_parsed(text: str, expected: pa.DataType) -> None:
    assert parse_type(text, "casts['a']") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "integer?",
        "decimal(99, 2)",
        "list<>",
        "float[]",
        "map<string>",
        "array<int, int>",
        "struct<>",
        "struct<int>",
        "struct<: int>",
        "list<int",
    ],
)
def test_an_unknown_type_name_is_reported_with_its_argument(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"casts\['a'\]: expected a type such as int64"):
        parse_type(text, "casts['a']")
