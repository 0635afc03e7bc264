"""The fields of a catalog table that an update sends to Glue."""

from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.glue import converters
from airflow_provider_lancens.namespace.metastore_protocol import Namespace, ParameterChange

READ: dict[str, Any] = {
    "Name": "t",
    "DatabaseName": "d",
    "Description": "clicks",
    "Owner": "ana",
    "CreateTime": datetime(2024, 1, 1, tzinfo=UTC),
    "UpdateTime": datetime(2024, 1, 2, tzinfo=UTC),
    "LastAccessTime": datetime(2024, 1, 3, tzinfo=UTC),
    "Retention": 7,
    "StorageDescriptor": {
        "Columns": [{"Name": "x", "Type": "int", "Comment": "the x", "Parameters": {"p": "q"}}],
        "Location": "s3://bucket/t.lance",
        "SerdeInfo": {"SerializationLibrary": "a.B", "Parameters": {"k": "v"}},
        "SkewedInfo": {"SkewedColumnNames": ["x"]},
    },
    "PartitionKeys": [{"Name": "day", "Type": "date"}],
    "TableType": "EXTERNAL_TABLE",
    "Parameters": {"table_type": "lance", "theirs": "1", "old": "1"},
    "CreatedBy": "arn:aws:iam::1:user/ana",
    "IsRegisteredWithLakeFormation": False,
    "CatalogId": "123456789012",
    "VersionId": "3",
    "IsMultiDialectView": False,
    "Status": {"State": "SUCCESS"},
    "FromANewerService": {"a": 1},
}
READ_ONLY = {
    "DatabaseName",
    "CreateTime",
    "UpdateTime",
    "CreatedBy",
    "IsRegisteredWithLakeFormation",
    "CatalogId",
    "VersionId",
    "IsMultiDialectView",
    "Status",
    "FromANewerService",
}


@pytest.fixture(scope="module")
def shape() -> Any:
    return botocore.session.get_session().get_service_model("glue").shape_for("TableInput")


def test_an_update_keeps_every_writable_field(shape: Any) -> None:
    sent = converters.updated_input(shape, READ, ParameterChange({"version": "2"}, ["old"]))
    kept = {key: value for key, value in READ.items() if key not in READ_ONLY}
    assert sent == {**kept, "Parameters": {"table_type": "lance", "theirs": "1", "version": "2"}}


def test_nested_read_only_fields_are_removed(shape: Any) -> None:
    view = {"Dialect": "SPARK", "ViewOriginalText": "SELECT 1", "IsStale": True}
    sent = converters.updated_input(
        shape, {**READ, "ViewDefinition": {"Representations": [view]}}, ParameterChange({})
    )
    assert sent["ViewDefinition"] == {
        "Representations": [{"Dialect": "SPARK", "ViewOriginalText": "SELECT 1"}]
    }


def test_a_catalog_table_without_parameters_gets_some(shape: Any) -> None:
    assert converters.updated_input(shape, {"Name": "t"}, ParameterChange({"a": "1"}, ["b"])) == {
        "Name": "t",
        "Parameters": {"a": "1"},
    }


def test_a_namespace_is_read_back_as_it_was_written() -> None:
    database = NamespaceId.of(["d"])
    namespace = Namespace(database, "s3://b/d.db", "clicks", "ana", "ROLE", {"team": "search"})
    assert converters.to_namespace(database, converters.database_input(namespace)) == namespace


def test_unset_fields_of_a_namespace_are_not_sent() -> None:
    sent = converters.database_input(Namespace(NamespaceId.of(["d"])))
    assert sent == {"Name": "d", "Parameters": {}}
