"""The code of pages on catalogs runs as it is written, on a double of Glue in place of each metastore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lance
import lance_namespace
import lancedb
import pyarrow as pa
import pytest

from airflow_provider_lancens import connect
from tests.servers.glue_double import GlueDouble
from tests.support.lakes import bucket_of, glue_lake
from tests.support.page_code import run_blocks

ROWS = pa.table({"id": [1, 2], "amount": [5.0, 7.5]})


@pytest.fixture
def namespace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The namespace of a server of its own, which all functions that connect return."""
    with GlueDouble() as glue:
        lake = glue_lake(glue, bucket_of(glue, "lake"))
        opened = lake.connect()
        real = lancedb.connect_namespace
        monkeypatch.setattr(lance_namespace, "connect", lambda *_: opened)
        monkeypatch.setattr(
            lancedb,
            "connect_namespace",
            lambda *_: real(lake.impl, {**lake.properties, "managed_by": "impl"}),
        )
        yield opened
        opened.drop_namespace({"id": ["sales"], "behavior": "CASCADE", "mode": "SKIP"})


def test_a_catalog_is_used_without_airflow(namespace: Any) -> None:
    run_blocks("namespaces")
    assert "sales" not in namespace.list_namespaces({"id": []}).namespaces


def test_tables_are_written_in_glue(namespace: Any) -> None:
    run_blocks("glue", orders=ROWS)
    assert namespace.list_tables({"id": ["sales"]}).tables == ["orders"]


def test_versions_are_decided_by_the_catalog(namespace: Any) -> None:
    namespace.create_namespace({"id": ["sales"]})
    declared = namespace.declare_table({"id": ["sales", "moved"]})
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["sales", "moved"], mode="append")
    at = {"s3://bucket/lake/orders.lance": declared.location}
    known = {"namespace": namespace, "lance": lance, "lancedb": lancedb, "rows": ROWS}
    run_blocks("managed-tables", at, **known)
    assert namespace.describe_table({"id": ["sales", "refunds"]}).version == 1
    assert namespace.describe_table({"id": ["sales", "orders"]}).location == declared.location


def test_an_interval_is_declared_to_monitoring() -> None:
    with GlueDouble() as glue:
        lake = connect("glue", glue_lake(glue, bucket_of(glue, "monitored")).properties)
        lake.create_namespace("sales")
        run_blocks("monitoring", lake=lake)
        assert "lancens.expected_update_interval" in lake.table("sales.orders").properties
        lake.drop_namespace("sales", cascade=True)
