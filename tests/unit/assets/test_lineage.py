"""OpenLineage names of Lance tables."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.assets.lineage import convert_asset_to_openlineage, name_of_files
from airflow_provider_lancens.assets.table import lance_table
from airflow_provider_lancens.identifiers import TableId

facets = pytest.importorskip("openlineage.client.event_v2")

Connect = Callable[..., str]


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("sales$orders", "sales.orders"),
        ("hive$sales$orders", "sales.orders"),
        ("spark$sales$orders", "spark.sales.orders"),
    ],
)
def test_a_table_in_hive_is_named_by_its_metastore(connect: Connect, table: str, name: str) -> None:
    lake = connect(host="metastore-1,metastore-2:9999")
    converted = convert_asset_to_openlineage(lance_table(table, lake), None)
    assert converted == facets.Dataset(namespace="hive://metastore-1:9083", name=name)


def test_a_table_in_glue_is_named_by_its_account(connect: Connect) -> None:
    lake = connect(conn_type="lance_glue", extra={"region": "eu-west-1", "catalog_id": "123456789012"})
    converted = convert_asset_to_openlineage(lance_table("sales$orders", lake), None)
    assert converted == facets.Dataset(
        namespace="arn:aws:glue:eu-west-1:123456789012", name="table/sales/orders"
    )


def test_a_glue_table_of_an_unknown_account_has_no_name(connect: Connect) -> None:
    lake = connect(conn_type="lance_glue", extra={"region": "eu-west-1"})
    assert convert_asset_to_openlineage(lance_table("sales$orders", lake), None) is None


@pytest.mark.parametrize(
    ("fields", "table", "namespace", "name"),
    [
        ({"extra": {"root": "/lake/"}}, "orders", "file", "/lake/orders.lance"),
        ({"extra": {"root": "/lake"}}, "sales$orders", "file", "/lake/sales.orders"),
        ({"extra": {"root": "s3a://bucket/lake"}}, "orders", "s3://bucket", "lake/orders.lance"),
        ({"extra": {"root": "s3://bucket"}}, "orders", "s3://bucket", "orders.lance"),
        (
            {"host": "https://catalog:8443/api/", "extra": {"impl": "rest"}},
            "sales$orders",
            "https://catalog:8443/api",
            "sales.orders",
        ),
        ({"extra": {"impl": "made.up.Catalog"}}, "orders", None, None),
    ],
)
def test_a_table_in_another_catalog_is_named_by_its_root_or_service(
    connect: Connect, fields: dict[str, Any], table: str, namespace: str | None, name: str | None
) -> None:
    lake = connect(conn_type="lance", password="hush-hush", **fields)
    converted = convert_asset_to_openlineage(lance_table(TableId.parse(table), lake), None)
    assert converted == (None if name is None else facets.Dataset(namespace=namespace, name=name))


@pytest.mark.parametrize("conn_type", [None, "http"])
def test_a_table_whose_authority_is_no_lance_connection_has_no_name(
    connect: Connect, conn_type: str | None
) -> None:
    if conn_type:
        connect("prod", conn_type=conn_type, host="www")
    assert convert_asset_to_openlineage(lance_table("sales$orders", "prod"), None) is None


def test_no_secret_of_the_connection_is_in_the_name(connect: Connect) -> None:
    lake = connect(host="metastore", login="me", password="hush-hush")
    assert "hush" not in str(convert_asset_to_openlineage(lance_table("sales$orders", lake), None))


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/data/in/a.csv", "file", "/data/in/a.csv"),
        ("file:///data/in/", "file", "/data/in"),
        ("/data/*/a.csv", "file", "/data"),
        ("/*.csv", "file", "/"),
        ("s3://bucket/in/a.csv", "s3://bucket", "in/a.csv"),
        ("s3a://bucket/in/2026-*/[ab].csv", "s3://bucket", "in"),
        ("s3://bucket/*.csv", "s3://bucket", "/"),
        ("gs://bucket/in", "gs://bucket", "in"),
        ("abfss://box@account.dfs.core.windows.net/in", "abfss://box@account.dfs.core.windows.net", "in"),
    ],
)
def test_files_are_named_by_their_storage_and_path(path: str, namespace: str, name: str) -> None:
    assert name_of_files(path) == (namespace, name)


@pytest.mark.parametrize(
    "path", ["az://box/in", "https://host/a.csv", "s3://me:hush-hush@bucket/in", "s3://*/in"]
)
def test_files_on_other_storages_or_with_credentials_have_no_name(path: str) -> None:
    assert name_of_files(path) is None


def test_airflow_finds_the_converter_by_the_scheme() -> None:
    from airflow.providers_manager import ProvidersManager

    assert ProvidersManager().asset_to_openlineage_converters["lance"] is convert_asset_to_openlineage
