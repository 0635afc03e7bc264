"""Lists of tables with data, despite invalid catalog tables, which are logged."""

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace import GlueNamespace
from tests.servers.glue_double import GlueDouble

LISTING = {"include_declared": False}


@pytest.fixture
def lake(glue: GlueDouble, connect_glue: Callable[..., GlueNamespace], database: str) -> GlueNamespace:
    """A namespace with a table that has data, and one that has none."""
    storage = {f"storage.{key}": value for key, value in glue.storage.items()}
    connected = connect_glue(**storage)
    connected.create_namespace({"id": [database]})
    rows = pa.table({"x": [1]})
    lance.write_dataset(rows, namespace_client=connected, table_id=[database, "full"], mode="create")
    connected.declare_table({"id": [database, "empty"]})
    return connected


def add_entry(glue: GlueDouble, database: str, name: str, location: str | None) -> None:
    """A catalog table as another client may write it."""
    descriptor = {} if location is None else {"StorageDescriptor": {"Location": location}}
    table = {"Name": name, "Parameters": {"table_type": "lance"}, **descriptor}
    glue.client("glue").create_table(DatabaseName=database, TableInput=table)


@pytest.mark.parametrize(
    "location",
    [None, "", "hdfs://namenode:8020/t.lance", "s3://a-bucket-that-was-deleted/t.lance"],
    ids=["none", "empty", "hdfs", "dead bucket"],
)
def test_a_table_that_cannot_have_data_is_left_out(
    glue: GlueDouble,
    lake: GlueNamespace,
    database: str,
    location: str | None,
) -> None:
    add_entry(glue, database, "odd", location)
    assert lake.list_tables({"id": [database], **LISTING}).tables == ["full"]
    assert lake.list_tables({"id": [database]}).tables == ["empty", "full", "odd"]
    assert f"{database}$odd" not in lake.list_all_tables({"id": [], **LISTING}).tables


def test_a_table_that_cannot_have_data_is_logged_with_the_reason(
    glue: GlueDouble, lake: GlueNamespace, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    add_entry(glue, database, "odd", "hdfs://namenode:8020/t.lance")
    lake.list_tables({"id": [database], **LISTING})
    assert f"Table {database}$odd is not listed, since it cannot have data: " in caplog.text


def test_a_table_whose_storage_is_unreachable_is_listed_and_logged(
    glue: GlueDouble,
    lake: GlueNamespace,
    connect_glue: Callable[..., GlueNamespace],
    database: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in ("data_1", "data_2"):
        add_entry(glue, database, name, f"s3://bucket/{name}.lance")
    storage = {f"storage.{key}": value for key, value in glue.storage.items()}
    unreachable = {key: "http://127.0.0.1:1" for key in storage if "endpoint" in key}
    with connect_glue(**storage | unreachable) as namespace:
        assert namespace.list_tables({"id": [database], **LISTING}).tables == ["data_1", "data_2", "full"]
    assert f"Table {database}$data_2 is listed, but whether it has data could not be checked: " in caplog.text
