import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark.files.types import parse_type


@pytest.mark.parametrize(
    ("words", "meant"),
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
def test_words_mean_types(words: str, meant: pa.DataType) -> None:
    assert parse_type(words, "casts['a']") == meant


@pytest.mark.parametrize("words", ["", "integer?", "decimal(99, 2)", "list<>", "float[]", "timestamp"])
def test_words_that_mean_none_are_named_with_their_argument(words: str) -> None:
    with pytest.raises(InvalidInputError, match=r"casts\['a'\]: expected a type such as int64"):
        parse_type(words, "casts['a']")
