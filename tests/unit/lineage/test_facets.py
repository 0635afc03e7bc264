"""OpenLineage's datasets and facets of what a task read and wrote, without servers."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import Asset
from openlineage.client.serde import Serde

from airflow_provider_lancens.assets.lineage import name_of_table
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.lineage.facets import operator_facets
from airflow_provider_lancens.lineage.task_lineage import (
    DerivedColumn,
    FileRead,
    LineageColumn,
    TableRead,
    TableWrite,
    TaskLineage,
)
from airflow_provider_lancens.spark.options import WriteRequest, change_of
from airflow_provider_lancens.spark.results import WriteResult

ORDERS, PRICES = TableId.parse("sales$orders"), TableId.parse("sales$prices")
COLUMN = LineageColumn("id", "int64")

Lineage = Callable[..., TaskLineage]


def result(**fields: Any) -> WriteResult:
    given: dict[str, Any] = {"version": 5, "previous_version": 4, "inserted": 10, "files": 2, "bytes": 99}
    made: dict[str, Any] = {"operation": "append", "outcome": "done", "seconds": 0.1}
    return WriteResult(table=str(ORDERS), **{**given, **made, **fields})


@pytest.fixture
def lineage(connect: Callable[..., str]) -> Lineage:
    """Create the lineage of a write to a table of a connection with a password."""
    hook = LanceHook.for_connection(connect(host="metastore", login="me", password="hush-hush"))
    names = {table: name_of_table(hook, table) for table in (ORDERS, PRICES)}

    def make(write: TableWrite, *reads: Any) -> TaskLineage:
        columns = {(ORDERS, 5): [COLUMN], (PRICES, 7): [LineageColumn("price", "double")]}
        return TaskLineage(write, reads, names, columns, frozenset())

    return make


def events(lineage: TaskLineage) -> Any:
    facets = operator_facets(lineage)
    return [[json.loads(Serde.to_json(one)) for one in part] for part in (facets.inputs, facets.outputs)]


@pytest.mark.parametrize(
    ("outcome", "request_fields", "change"),
    [
        ({}, {}, None),
        ({"previous_version": None, "version": 1}, {}, "CREATE"),
        ({"previous_version": None, "version": 1}, {"mode": "overwrite"}, "CREATE"),
        ({}, {"mode": "overwrite"}, "OVERWRITE"),
        ({}, {"mode": "overwrite", "where": "day = 1"}, None),
        ({"outcome": "found"}, {"mode": "overwrite"}, None),
        ({"outcome": "found", "previous_version": None, "version": 1}, {}, None),
        (
            {"outcome": "staged", "staged_version": "staged-9223372036854775809"},
            {"mode": "overwrite", "stage": True},
            None,
        ),
    ],
)
def test_only_what_creates_or_replaces_all_data_changes_the_life_cycle(
    lineage: Lineage, outcome: dict[str, Any], request_fields: dict[str, Any], change: str | None
) -> None:
    write = TableWrite.of_request(
        result(**outcome), WriteRequest(change_of(**{"mode": "append", **request_fields})), {}
    )
    _, [output] = events(lineage(write))

    assert output["facets"].get("lifecycleStateChange", {}).get("lifecycleStateChange") == change


def test_rows_files_and_bytes_are_those_of_this_run(lineage: Lineage) -> None:
    _, [written] = events(lineage(TableWrite.of(result())))
    _, [found] = events(lineage(TableWrite.of(result(outcome="found"))))

    statistics = written["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["fileCount"], statistics["size"]) == (10, 2, 99)
    assert found["outputFacets"] == {}


def test_inputs_have_their_versions_and_schemas_and_changes_their_range(lineage: Lineage) -> None:
    pinned, changed = TableRead(PRICES, 7), TableRead(ORDERS, 5, reads_changes=True, after_version=2)
    [prices, orders], _ = events(lineage(TableWrite.of(result()), pinned, changed))

    assert prices["facets"]["version"]["datasetVersion"] == "7"
    assert [field["name"] for field in prices["facets"]["schema"]["fields"]] == ["price"]
    assert "lance_changes" not in prices["facets"]
    assert orders["facets"]["version"]["datasetVersion"] == "5"
    assert orders["facets"]["lance_changes"]["afterVersion"] == "2"


def test_columns_come_from_those_of_each_file(lineage: Lineage) -> None:
    derived = {"id": DerivedColumn(["ID"], is_copy=True), "price": DerivedColumn(["p"], is_copy=False)}
    write = TableWrite.of_request(result(), WriteRequest(), derived)
    files = [FileRead("s3://in/a/*.csv"), FileRead("s3://in/a/b-?.csv"), FileRead("/b.csv")]
    inputs, [output] = events(lineage(write, *files))

    assert [(one["namespace"], one["name"]) for one in inputs] == [("s3://in", "a"), ("file", "/b.csv")]
    fields = output["facets"]["columnLineage"]["fields"]
    assert [
        (name, one["namespace"], one["name"], one["field"], one["transformations"][0]["subtype"])
        for name, field in fields.items()
        for one in field["inputFields"]
    ] == [
        ("id", "s3://in", "a", "ID", "IDENTITY"),
        ("id", "file", "/b.csv", "ID", "IDENTITY"),
        ("price", "s3://in", "a", "p", "TRANSFORMATION"),
        ("price", "file", "/b.csv", "p", "TRANSFORMATION"),
    ]


def test_columns_of_unnamed_files_have_no_origin(lineage: Lineage) -> None:
    derived = {"id": DerivedColumn(["ID"], is_copy=True)}
    inputs, [output] = events(lineage(TableWrite.of(result(), derived=derived), FileRead("az://c/a.csv")))

    assert inputs == []
    assert "columnLineage" not in output["facets"]


def test_a_struct_has_its_fields_and_other_types_their_names_in_arrow() -> None:
    struct = pa.struct([("x", pa.float32()), ("tags", pa.list_(pa.string()))])
    columns = [
        LineageColumn.of(pa.field(name, kind))
        for name, kind in [("v", pa.list_(pa.float32(), 3)), ("s", struct)]
    ]

    assert columns == [
        LineageColumn("v", "fixed_size_list<item: float>[3]"),
        LineageColumn(
            "s", "struct", (LineageColumn("x", "float"), LineageColumn("tags", "list<item: string>"))
        ),
    ]


def test_a_table_without_a_name_is_left_out(lineage: Lineage) -> None:
    known = lineage(TableWrite.of(result()), TableRead(PRICES, 7))
    unnamed = TaskLineage(known.write, known.reads, {}, {}, frozenset())

    assert events(unnamed) == [[], []]


def test_a_declared_table_without_data_has_no_version(lineage: Lineage) -> None:
    write = TableWrite.of(result(version=0, previous_version=None, outcome="unchanged"))
    _, [output] = events(lineage(write))

    assert set(output["facets"]) == {"lance_commit"}


def test_no_secret_of_the_connection_is_reported(lineage: Lineage) -> None:
    reads = [TableRead(PRICES, 7), FileRead("s3://me:hush-hush@bucket/a.csv")]

    assert "hush" not in str(operator_facets(lineage(TableWrite.of(result()), *reads)))


def test_inlets_and_outlets_that_are_no_lance_tables_are_reported_too(lineage: Lineage) -> None:
    given = lineage(TableWrite.of(result()), FileRead("s3://in/a"))
    facets = operator_facets(given, [Asset("s3://in/a"), Asset("s3://in/b")], [Asset("s3://out/c")])

    assert [(one.namespace, one.name) for one in facets.inputs] == [("s3://in", "a"), ("s3://in", "b")]
    assert [(one.namespace, one.name) for one in facets.outputs] == [
        ("hive://metastore:9083", "sales.orders"),
        ("s3://out", "c"),
    ]
