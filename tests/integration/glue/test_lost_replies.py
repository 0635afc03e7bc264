"""Lost replies: the SDK repeats the request, and finds the effect of the first one."""

from types import SimpleNamespace

import pytest
from lance_namespace.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Namespace
from tests.servers.glue_double import GlueDouble
from tests.servers.glue_faults import BROKEN, LOST_REPLY, LOST_REQUEST

FAULTS = pytest.mark.parametrize(
    "fault", [LOST_REPLY, LOST_REQUEST, BROKEN], ids=["reply", "request", "broken"]
)


@FAULTS
def test_a_namespace_is_created_and_dropped_despite_lost_replies(
    glue: GlueDouble, catalog: GlueMetastore, database: str, fault: object
) -> None:
    namespace = Namespace(NamespaceId.of([database]), description="clicks", properties={"team": "search"})
    with glue.faults.on("CreateDatabase", fault):
        catalog.create_namespace(namespace)
    assert catalog.get_namespace(namespace.id) == namespace
    with glue.faults.on("DeleteDatabase", fault):
        catalog.drop_namespace(namespace.id)
    with pytest.raises(NamespaceNotFoundError):
        catalog.get_namespace(namespace.id)


@FAULTS
def test_a_table_is_created_and_dropped_despite_lost_replies(
    glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId, fault: object
) -> None:
    table = CatalogTable(db.table("t"), "s3://bucket/t.lance", {"table_type": "lance"})
    with glue.faults.on("CreateTable", fault):
        catalog.create_table(table)
    assert catalog.get_table(table.id) == table
    read = catalog.get_table(table.id)
    with glue.faults.on("DeleteTable", fault):
        catalog.drop_table(read)
    with pytest.raises(TableNotFoundError):
        catalog.get_table(table.id)


def test_a_table_that_is_declared_again_before_a_lost_drop_is_repeated_stays(
    glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table(CatalogTable(db.table("t"), "s3://bucket/t.lance", {"table_type": "lance"}))
    read = catalog.get_table(db.table("t"))
    other = CatalogTable(db.table("t"), "s3://bucket/other.lance", {"table_type": "lance"})
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        if not pauses:
            catalog.create_table(other)
        pauses.append(seconds)

    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=pause))
    with glue.faults.on("DeleteTable", LOST_REPLY):
        catalog.drop_table(read)

    assert pauses
    assert catalog.get_table(db.table("t")) == other


@FAULTS
def test_a_batch_is_dropped_despite_lost_replies(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable, fault: object
) -> None:
    with glue.faults.on("BatchDeleteTable", fault):
        assert catalog.drop_tables(table.id.namespace, [table]) == {}
    assert catalog.list_tables(table.id.namespace) == []


@FAULTS
def test_a_table_created_by_another_client_is_refused(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable, fault: object
) -> None:
    elsewhere = CatalogTable(table.id, "s3://bucket/elsewhere.lance", table.parameters)
    with glue.faults.on("CreateTable", fault), pytest.raises(TableAlreadyExistsError):
        catalog.create_table(elsewhere)
    other = Namespace(table.id.namespace, description="another")
    with glue.faults.on("CreateDatabase", fault), pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(other)


def test_an_existing_equal_table_is_refused_if_no_reply_was_lost(
    catalog: GlueMetastore, table: CatalogTable
) -> None:
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(table)
    catalog.drop_table(table)
    with pytest.raises(TableNotFoundError):
        catalog.drop_table(table)


def test_the_catalog_is_read_back_if_every_reply_is_lost(
    glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId
) -> None:
    table = CatalogTable(db.table("t"), "s3://bucket/t.lance")
    with glue.faults.on("CreateTable", *[LOST_REPLY] * 4):
        catalog.create_table(table)
    assert catalog.get_table(table.id) == table


def test_lost_requests_are_an_error(glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId) -> None:
    table = CatalogTable(db.table("t"), "s3://bucket/t.lance")
    with glue.faults.on("CreateTable", *[LOST_REQUEST] * 4), pytest.raises(ServiceUnavailableError):
        catalog.create_table(table)
    assert catalog.list_tables(db) == []
