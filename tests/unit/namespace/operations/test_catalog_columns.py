"""Types of columns as catalog tables have them: each one parses, or is described as text."""

import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace.operations.catalog_columns import hive_type


@pytest.mark.parametrize(
    ("arrow", "hive"),
    [
        (pa.struct([("a", pa.int32()), ("B_2", pa.string())]), "struct<a:int,b_2:string>"),
        (pa.struct([("a:b", pa.int32())]), "string"),
        (pa.struct([("a,b", pa.int32())]), "string"),
        (pa.struct([("c<d>", pa.int32())]), "string"),
        (pa.struct([("24/7", pa.int32())]), "string"),
        (pa.struct([("@timestamp", pa.int32())]), "string"),
        (pa.struct([("1d", pa.int32())]), "string"),
        (pa.struct([("größe", pa.int32())]), "string"),
        (pa.struct([("", pa.int32())]), "string"),
        (pa.struct([("a", pa.int32()), ("A", pa.int32())]), "string"),
        (pa.struct([]), "string"),
        (pa.list_(pa.struct([("a b", pa.int32())])), "array<string>"),
        (pa.map_(pa.string(), pa.struct([("a-b", pa.int32())])), "map<string,string>"),
        (pa.struct([("a", pa.struct([("b:c", pa.int32())]))]), "struct<a:string>"),
        (pa.decimal128(38, 10), "decimal(38,10)"),
        (pa.decimal128(10, -2), "decimal(12,0)"),
        (pa.decimal128(37, -2), "string"),
        (pa.decimal128(3, 5), "decimal(5,5)"),
        (pa.decimal256(38, 2), "decimal(38,2)"),
        (pa.decimal256(60, 2), "string"),
    ],
)
def test_a_type_that_hive_s_grammar_cannot_express_is_described_as_text(
    arrow: pa.DataType, hive: str
) -> None:
    assert hive_type(arrow) == hive
