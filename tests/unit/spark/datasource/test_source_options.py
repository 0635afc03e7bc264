# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

import json
from datetime import UTC, datetime

import pytest
from lance_namespace.errors import InvalidInputError
from pyspark.sql.types import StructType

from tests.pyspark_versions import need_data_sources

need_data_sources()

from airflow_provider_lancens.spark import LanceDataSource, NamespaceSpec, TableLayout, foreach_batch
from airflow_provider_lancens.spark.datasource import check_pyspark
from airflow_provider_lancens.spark.datasource.source_options import (
    ReadConfig,
    epoch_request,
    namespace_of,
    write_request,
)
from airflow_provider_lancens.spark.options import Overwrite, Upsert, WriteIdentity
from airflow_provider_lancens.spark.streaming.foreach_batch import epoch_key
from airflow_provider_lancens.spark.table.version_lookup import WantedVersion

BOUND = NamespaceSpec("dir", {"root": "/lake"})


def test_options_of_a_read_are_parsed() -> None:
    options = {"table": "db$t", "version": "3", "columns": "id, price", "filter": "id > 1"}
    blobs = {"image": "all", "video": [0, 65536]}

    assert ReadConfig.of({**options, "blobs": json.dumps(blobs)}) == ReadConfig(
        "db$t", WantedVersion(3, is_text=True), ["id", "price"], "id > 1", blobs
    )
    assert ReadConfig.of({"table": "t"}) == ReadConfig("t", WantedVersion(), None, None, None)


def test_a_version_is_given_by_a_time_or_a_tag() -> None:
    at_time = ReadConfig.of({"table": "t", "version": "2026-11-01T06:00:00+00:00"})

    assert at_time.wanted == WantedVersion(as_of=datetime(2026, 11, 1, 6, tzinfo=UTC))
    assert ReadConfig.of({"table": "t", "version": "gold"}).wanted == WantedVersion(tag="gold")
    with pytest.raises(
        InvalidInputError, match="version: expected a number, a time with a time zone such as"
    ):
        ReadConfig.of({"table": "t", "version": "2026-11-01T25:00"})


def test_column_names_with_commas_are_given_as_json() -> None:
    assert ReadConfig.of({"table": "t", "columns": '["a,b", "c"]'}).columns == ["a,b", "c"]


def test_options_of_a_write_are_parsed() -> None:
    table, request = write_request(
        {
            "table": "db$t",
            "key": "january",
            "on_existing_key": "redo",
            "max_rows_per_file": "10",
            "stable_row_ids": "True",
            "data_storage_version": "2.1",
            "vector_columns": '{"embedding": 768}',
        },
        overwrite=True,
    )

    assert (table, request.change) == ("db$t", Overwrite())
    assert request.identity == WriteIdentity("january", on_existing_key="redo")
    vectors = {"embedding": 768}
    assert request.options == TableLayout(10, "2.1", stable_row_ids=True, vector_columns=vectors)


def test_the_schema_mode_is_an_option() -> None:
    options = [{"table": "t", "schema_mode": mode} for mode in ("merge", "overwrite")]

    requests = [write_request(one, overwrite=True)[1] for one in options]

    modes = (Overwrite(schema_mode="merge"), Overwrite(schema_mode="overwrite"))
    assert tuple(request.change for request in requests) == modes


def test_an_append_with_key_columns_is_an_upsert() -> None:
    _, request = write_request({"table": "t", "on": "id,region"}, overwrite=False)

    assert request.change == Upsert(on=["id", "region"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "table: expected an identifier"),
        (
            {"table": "t", "verzion": "1"},
            "options: expected table, columns, filter, version, blobs and namespace.*, got verzion",
        ),
        ({"table": "t", "path": "/x"}, "namespace.*, got path"),
        ({"table": "t", "key": "k"}, "namespace.*, got key"),
        ({"table": "t", "columns": "a,,b"}, "columns: expected names"),
        ({"table": "t", "columns": "[1]"}, "columns: expected names"),
        ({"table": "t", "columns": "[a"}, "columns: expected JSON"),
    ],
)
def test_an_invalid_read_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        ReadConfig.of(options)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("options", "overwrite", "message"),
    [
        ({"version": "1"}, False, "namespace.*, got version"),
        ({"on": "id", "where": "id = 1"}, True, "on: not allowed with where"),
        ({"schema_mode": "overwrite"}, False, "only an overwrite can replace columns"),
        ({"schema_mode": "evolve"}, False, "schema_mode: expected one of strict, merge, overwrite"),
        ({"on_existing_key": "perhaps"}, False, "on_existing_key: expected one of redo, redo_if_changed"),
        ({"query_id": "q"}, False, "namespace.*, got query_id"),
        ({"key": " "}, False, "key: expected text"),
        ({"stable_row_ids": "1"}, False, "expected true or false, got '1'"),
        ({"vector_columns": "[768]"}, False, "vector_columns: expected a JSON object such as"),
        ({"vector_columns": '{"e": 0}'}, False, "vector_columns['e']"),
        ({"max_rows_per_file": "-1"}, False, "max_rows_per_file: expected a whole number"),
    ],
)
def test_an_invalid_write_is_refused(options: dict[str, str], overwrite: bool, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        write_request({"table": "t", **options}, overwrite)
    assert message in str(refused.value)


def test_the_namespace_comes_from_the_options_or_from_the_class() -> None:
    options = {"table": "t", "namespace.impl": "dir", "namespace.root": "/lake"}

    assert namespace_of(options, None) == BOUND
    assert namespace_of({"table": "t"}, BOUND) is BOUND


@pytest.mark.parametrize(
    ("options", "bound"), [({}, None), ({"namespace.impl": "dir"}, BOUND), ({"namespace.root": "/x"}, BOUND)]
)
def test_none_or_two_namespaces_are_refused(options: dict[str, str], bound: NamespaceSpec | None) -> None:
    with pytest.raises(InvalidInputError, match="namespace"):
        namespace_of(options, bound)


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5"])
def test_an_older_pyspark_is_refused_with_what_to_use(version: str) -> None:
    with pytest.raises(ImportError, match=r"requires PySpark 4\.1 or newer; use the methods of a Table"):
        check_pyspark(version)


@pytest.mark.parametrize("version", ["4.1.0", "4.3.0.dev0", "5.0.0"])
def test_a_newer_pyspark_is_accepted(version: str) -> None:
    check_pyspark(version)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "table: expected an identifier"),
        (
            {"table": "t", "version": "1"},
            (
                "options: expected table, columns, filter, after_version, max_rows_per_batch, "
                "skip_change_commits and namespace.*, got version"
            ),
        ),
        ({"table": "t", "after_version": "-1"}, "after_version: expected a whole number of at least 0"),
        ({"table": "t", "max_rows_per_batch": "0"}, "max_rows_per_batch: expected a whole number"),
        ({"table": "t", "skip_change_commits": "ignore"}, "skip_change_commits: expected true or false"),
    ],
)
def test_an_invalid_stream_to_read_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        LanceDataSource({**options, "namespace.impl": "dir"}).streamReader(StructType())
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("options", "overwrite", "message"),
    [
        ({"key": "a"}, False, "key: not allowed for a stream"),
        (
            {"where": "a = 1"},
            False,
            (
                "options: expected table, on, schema_mode, query_id, max_rows_per_file, "
                "data_storage_version, stable_row_ids, "
                "vector_columns, blob_columns and namespace.*, got where"
            ),
        ),
        ({"on": "id"}, True, "on: a stream that overwrites replaces all rows"),
    ],
)
def test_an_invalid_stream_to_write_is_refused(
    options: dict[str, str], overwrite: bool, message: str
) -> None:
    given = {"table": "t", "checkpointlocation": "/checkpoint", "namespace.impl": "dir", **options}
    with pytest.raises(InvalidInputError) as refused:
        LanceDataSource(given).streamWriter(StructType(), overwrite)
    assert message in str(refused.value)


def test_options_that_spark_itself_sets_for_a_stream_are_accepted() -> None:
    of_spark = {"checkpointlocation": "/checkpoint", "queryname": "orders"}
    writer = LanceDataSource({"table": "t", "namespace.impl": "dir", **of_spark}).streamWriter(
        StructType(), overwrite=False
    )
    assert (writer.table, writer.query_id) == ("t", None)


def test_an_invalid_id_of_a_query_or_an_epoch_is_refused() -> None:
    for query_id in ("", " ", 5):
        with pytest.raises(InvalidInputError, match=r"query_id=.*expected text"):
            foreach_batch(NamespaceSpec("dir", {}), "t", query_id=query_id)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"query_id=' '.*expected text"):
        epoch_request({"table": "t", "query_id": " "}, overwrite=False)
    for epoch in (-1, "5", True):
        with pytest.raises(InvalidInputError, match=r"epoch=.*expected the number of a micro-batch"):
            epoch_key("orders", epoch)  # type: ignore[arg-type]
