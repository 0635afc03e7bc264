import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.write.files.projection import parse_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int64", pa.int64()),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("timestamp[us]", pa.timestamp("us")),
        ("timestamp[us, UTC]", pa.timestamp("us", "UTC")),
        ("timestamp[ns,Europe/Berlin]", pa.timestamp("ns", "Europe/Berlin")),
        ("list<list<string>>", pa.list_(pa.list_(pa.string()))),
        ("float[768]", pa.list_(pa.float32(), 768)),
        ("timestamp[us][2]", pa.list_(pa.timestamp("us"), 2)),
    ],
)
def test_type_names_are_parsed(text: str, expected: pa.DataType) -> None:
    assert parse_type(text, "casts['a']") == expected


@pytest.mark.parametrize("text", ["", "integer?", "decimal(99, 2)", "list<>", "float[]", "timestamp"])
def test_an_unknown_type_name_is_reported_with_its_argument(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"casts\['a'\]: expected a type such as int64"):
        parse_type(text, "casts['a']")
