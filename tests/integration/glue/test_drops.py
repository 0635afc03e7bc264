"""Drops: Glue drops a non-empty database without an error, so the namespace checks first."""

from typing import Any

import pytest
from lance_namespace.errors import ErrorCode, LanceNamespaceError, NamespaceNotEmptyError

from airflow_provider_lancens import LanceCatalog
from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace import GlueNamespace
from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from tests.servers.glue_double import GlueDouble
from tests.servers.glue_faults import DENIED


@pytest.fixture
def names(glue: GlueDouble, db: NamespaceId) -> list[str]:
    """More tables than fit into a batch."""
    client, made = glue.client("glue"), [f"t{number:03}" for number in range(230)]
    for name in made:
        catalog_table = {"Name": name, "Parameters": {"table_type": "lance"}}
        client.create_table(DatabaseName=db.name, TableInput=catalog_table)
    return made


def as_read(db: NamespaceId, *names: str) -> list[CatalogTable]:
    return [CatalogTable(db.table(name)) for name in names]


def test_restrict_never_sends_the_drop_of_a_non_empty_database(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable
) -> None:
    with pytest.raises(NamespaceNotEmptyError, match="'t'"):
        catalog.drop_namespace(table.id.namespace)
    dropped = [request.body["Name"] for request in glue.requests if request.operation == "DeleteDatabase"]
    assert table.id.namespace.name not in dropped


def test_tables_are_dropped_in_batches_of_a_hundred(
    glue: GlueDouble, namespace: GlueNamespace, db: NamespaceId, names: list[str]
) -> None:
    namespace.drop_namespace({"id": [db.name], "behavior": "cascade"})
    batches = [body["TablesToDelete"] for body in glue.sent("BatchDeleteTable", db.name)]
    assert [len(batch) for batch in batches] == [100, 100, 30]
    assert sorted(name for batch in batches for name in batch) == names


def test_tables_of_a_batch_that_were_not_dropped_are_named_with_the_reason(
    glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId, names: list[str]
) -> None:
    kept = {"t007": "AccessDeniedException", "t150": "ConcurrentModificationException"}
    with glue.faults.keeping(kept):
        failed = catalog.drop_tables(db, as_read(db, *names, "gone already"))
    assert {name: error.code for name, error in failed.items()} == {
        "t007": ErrorCode.PERMISSION_DENIED,
        "t150": ErrorCode.CONCURRENT_MODIFICATION,
    }
    assert sorted(catalog.list_tables(db)) == sorted(kept)


def test_a_failed_batch_stops_the_batches_after_it(
    glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId, names: list[str]
) -> None:
    with glue.faults.on("BatchDeleteTable", None, DENIED):
        failed = catalog.drop_tables(db, as_read(db, *names))
    assert list(failed) == names[100:]
    assert {error.code for error in failed.values()} == {ErrorCode.PERMISSION_DENIED}
    assert sorted(catalog.list_tables(db)) == names[100:]


def test_a_partial_cascade_keeps_the_database_and_can_be_repeated(
    glue: GlueDouble, namespace: GlueNamespace, catalog: GlueMetastore, table: CatalogTable
) -> None:
    drop = {"id": [table.id.namespace.name], "behavior": "cascade"}
    with glue.faults.keeping({"t": "AccessDeniedException"}), pytest.raises(LanceNamespaceError) as stopped:
        namespace.drop_namespace(drop)
    assert stopped.value.code == ErrorCode.PERMISSION_DENIED
    assert str(table.id) in str(stopped.value)
    assert catalog.list_tables(table.id.namespace) == ["t"]
    namespace.drop_namespace(drop)


def test_tables_of_a_missing_database_are_missing(catalog: GlueMetastore, database: str) -> None:
    missing = NamespaceId.of([database])
    assert catalog.drop_tables(missing, as_read(missing, "t")) == {}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, ErrorCode.NAMESPACE_NOT_EMPTY),
        ({"cascade": True}, ErrorCode.NAMESPACE_NOT_EMPTY),
        ({"cascade": True, "foreign_tables": ["other"]}, ErrorCode.INVALID_INPUT),
        ({"cascade": True, "foreign_tables": ["{db}.raw"]}, None),
        ({"cascade": True, "foreign_tables": ["*"]}, None),
    ],
)
def test_a_dry_run_fails_where_the_drop_would(
    glue: GlueDouble,
    namespace: GlueNamespace,
    table: CatalogTable,
    given: dict[str, Any],
    code: ErrorCode | None,
) -> None:
    database = table.id.namespace.name
    glue.client("glue").create_table(DatabaseName=database, TableInput={"Name": "raw", "Parameters": {}})
    lake = LanceCatalog(lambda: namespace)
    if "foreign_tables" in given:
        given = {**given, "foreign_tables": [one.format(db=database) for one in given["foreign_tables"]]}

    def outcome(*, dry_run: bool) -> object:
        try:
            return lake.drop_namespace(database, dry_run=dry_run, **given).outcome
        except LanceNamespaceError as error:
            return error.code

    assert outcome(dry_run=True) == (code or "planned")
    assert lake.list_tables(database)
    assert outcome(dry_run=False) == (code or "done")
