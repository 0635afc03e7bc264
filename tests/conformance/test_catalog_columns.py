"""The columns that a catalog table describes follow the dataset's, and nothing else of it changes."""

import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.support.backends import AUTHORITIES, Backend
from tests.support.request_data import stream

pytestmark = pytest.mark.parametrize(("backend", "managed_by"), AUTHORITIES, indirect=["backend"])

FIRST = pa.table(
    {
        "Id": pa.array([1], pa.int32()),
        "v": pa.array([[0.5, 1.5]], pa.list_(pa.float32(), 2)),
        "s": pa.array([{"x": 1, "Y": ["a"]}], pa.struct([("x", pa.int64()), ("Y", pa.list_(pa.string()))])),
        "at": pa.array([0], pa.timestamp("us", "UTC")),
        "price": pa.array([None], pa.decimal128(7, 2)),
        "data": [b"x"],
    }
)


def described(namespace: LanceNamespace, table: list[str]) -> dict[str, str]:
    found = namespace._metastore.get_table(namespace._tables.get(_id(namespace, table)).id)  # type: ignore[attr-defined]
    return {column.name: column.type for column in found.columns}


def _id(namespace: LanceNamespace, table: list[str]) -> object:
    from airflow_provider_lancens.namespace.requests import table_id

    return table_id(table, namespace._metastore)  # type: ignore[attr-defined]


def test_described_columns_follow_the_data_set(
    backend: Backend, namespace: LanceNamespace, db: list[str], managed_by: str
) -> None:
    table = [*db, "t"]
    request = {"id": table, "properties": {"managed_by": managed_by, "team": "search"}}
    namespace.create_table(request, stream(FIRST))
    assert described(namespace, table) == {}
    before = namespace.describe_table({"id": table})

    assert namespace.update_catalog_columns(table)  # type: ignore[attr-defined]

    assert described(namespace, table) == {
        "id": "int",
        "v": "array<float>",
        "s": "struct<x:bigint,y:array<string>>",
        "at": "timestamp",
        "price": "decimal(7,2)",
        "data": "binary",
    }
    assert not namespace.update_catalog_columns(table)  # type: ignore[attr-defined]
    after = namespace.describe_table({"id": table})
    assert (after.location, after.version) == (before.location, before.version)
    assert _lasting(after.properties) == _lasting(before.properties)
    namespace.insert_into_table({"id": table}, stream(FIRST))
    assert namespace.count_table_rows({"id": table}).count == 2


def _lasting(properties: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key != "transient_lastDdlTime"}


def test_columns_that_were_dropped_added_and_retyped_are_described(
    namespace: LanceNamespace, db: list[str], managed_by: str
) -> None:
    table = [*db, "t"]
    namespace.create_table({"id": table, "properties": {"managed_by": managed_by}}, stream(FIRST))
    namespace.update_catalog_columns(table)  # type: ignore[attr-defined]

    namespace.alter_table_drop_columns({"id": table, "columns": ["v", "s", "at", "price"]})
    retyped = [{"path": "Id", "data_type": {"type": "int64"}, "rename": "key"}]
    namespace.alter_table_alter_columns({"id": table, "alterations": retyped})
    new = [{"name": "label", "expression": "'a'"}]
    namespace.alter_table_add_columns({"id": table, "new_columns": new})

    assert namespace.update_catalog_columns(table)  # type: ignore[attr-defined]
    assert described(namespace, table) == {"key": "bigint", "data": "binary", "label": "string"}


def test_names_that_differ_only_in_case_are_refused(
    namespace: LanceNamespace, db: list[str], managed_by: str
) -> None:
    table = [*db, "t"]
    rows = pa.table({"a": [1], "A": [2]})
    namespace.create_table({"id": table, "properties": {"managed_by": managed_by}}, stream(rows))

    with refused_with(ErrorCode.INVALID_INPUT, "differ only in case"):
        namespace.update_catalog_columns(table)  # type: ignore[attr-defined]
    assert described(namespace, table) == {}
