# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

import pytest
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError
from pyspark.sql.types import StructType

from tests.sparks import need_data_sources

need_data_sources()

from airflow_provider_lancens.spark import LanceDataSource, NamespaceSpec, WriteOptions
from airflow_provider_lancens.spark.datasource import check_pyspark
from airflow_provider_lancens.spark.datasource.options import ReadWords, namespace_of, write_order

BOUND = NamespaceSpec("dir", {"root": "/lake"})


def test_a_read_by_its_words() -> None:
    options = {"table": "db$t", "version": "3", "columns": "id, price", "filter": "id > 1"}

    assert ReadWords.of(options) == ReadWords("db$t", 3, ["id", "price"], "id > 1")
    assert ReadWords.of({"table": "t"}) == ReadWords("t", None, None, None)


def test_names_with_commas_are_json() -> None:
    assert ReadWords.of({"table": "t", "columns": '["a,b", "c"]'}).columns == ["a,b", "c"]


def test_a_write_by_its_words() -> None:
    table, order = write_order(
        {
            "table": "db$t",
            "idempotency_key": "january",
            "on_changed": "replace",
            "max_rows_per_file": "10",
            "enable_stable_row_ids": "True",
            "data_storage_version": "2.1",
            "vector_columns": '{"embedding": 768}',
        },
        overwrite=True,
    )

    assert (table, order.mode, order.name.key, order.name.on_changed) == (
        "db$t",
        "overwrite",
        "january",
        "replace",
    )
    vectors = {"embedding": 768}
    assert order.options == WriteOptions(10, "2.1", enable_stable_row_ids=True, vector_columns=vectors)


def test_an_append_with_key_columns_is_an_upsert() -> None:
    _, order = write_order({"table": "t", "on": "id,region"}, overwrite=False)

    assert (order.mode, order.on) == ("upsert", ("id", "region"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "table: expected an identifier"),
        ({"table": "t", "verzion": "1"}, "verzion not known here; there are table, version"),
        ({"table": "t", "path": "/x"}, "path not known"),
        ({"table": "t", "idempotency_key": "k"}, "idempotency_key not known"),
        ({"table": "t", "version": "0"}, "version: expected a whole number of at least 1, got '0'"),
        ({"table": "t", "version": "newest"}, "got 'newest'"),
        ({"table": "t", "columns": "a,,b"}, "columns: expected names"),
        ({"table": "t", "columns": "[1]"}, "columns: expected names"),
        ({"table": "t", "columns": "[a"}, "columns: expected JSON"),
    ],
)
def test_a_read_that_makes_no_sense_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        ReadWords.of(options)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("options", "overwrite", "words"),
    [
        ({"version": "1"}, False, "version not known here"),
        ({"on": "id"}, True, "an overwrite takes no key columns"),
        ({"on": "id", "on_changed": "replace"}, False, "what an upsert replaced"),
        ({"on_changed": "perhaps"}, False, "on_changed: expected one of fail, replace"),
        ({"idempotency_key": " "}, False, "idempotency_key: expected words"),
        ({"enable_stable_row_ids": "1"}, False, "expected true or false, got '1'"),
        ({"vector_columns": "[768]"}, False, "vector_columns: expected a JSON object such as"),
        ({"vector_columns": '{"e": 0}'}, False, "vector_columns['e']"),
        ({"max_rows_per_file": "-1"}, False, "max_rows_per_file: expected a whole number"),
    ],
)
def test_a_write_that_makes_no_sense_is_refused(options: dict[str, str], overwrite: bool, words: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        write_order({"table": "t", **options}, overwrite)
    assert words in str(refused.value)


def test_the_namespace_comes_from_the_options_or_from_the_class() -> None:
    options = {"table": "t", "namespace.impl": "dir", "namespace.root": "/lake"}

    assert namespace_of(options, None) == BOUND
    assert namespace_of({"table": "t"}, BOUND) is BOUND


@pytest.mark.parametrize(
    ("options", "bound"), [({}, None), ({"namespace.impl": "dir"}, BOUND), ({"namespace.root": "/x"}, BOUND)]
)
def test_no_namespace_or_two_are_refused(options: dict[str, str], bound: NamespaceSpec | None) -> None:
    with pytest.raises(InvalidInputError, match="namespace"):
        namespace_of(options, bound)


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5"])
def test_an_older_pyspark_is_told_what_to_use(version: str) -> None:
    with pytest.raises(ImportError, match=r"needs 4\.1 or newer; write_table and read_table"):
        check_pyspark(version)


@pytest.mark.parametrize("version", ["4.1.0", "4.3.0.dev0", "5.0.0"])
def test_a_newer_pyspark_will_do(version: str) -> None:
    check_pyspark(version)


def test_streams_are_refused_with_what_to_do_instead() -> None:
    source = LanceDataSource({})

    with pytest.raises(UnsupportedOperationError, match=r"readStream: .* wait for a version"):
        source.streamReader(StructType())
    with pytest.raises(UnsupportedOperationError, match=r"writeStream: .* foreachBatch"):
        source.streamWriter(StructType(), overwrite=False)
