"""Lists with several pages, and with names that aren't valid identifiers."""

from collections.abc import Iterable

import pytest
from lance_namespace.errors import (
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    TableNotFoundError,
)

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace import GlueNamespace
from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from tests.servers.glue_double import GlueDouble
from tests.servers.glue_faults import BROKEN

TABLES = 250


def make_tables(glue: GlueDouble, db: NamespaceId, names: Iterable[str], table_type: str = "LANCE") -> None:
    client = glue.client("glue")
    for name in names:
        parameters = {"table_type": table_type}
        client.create_table(DatabaseName=db.name, TableInput={"Name": name, "Parameters": parameters})


@pytest.fixture
def many(glue: GlueDouble, db: NamespaceId) -> list[str]:
    names = [f"t{number:03}" for number in range(TABLES)]
    make_tables(glue, db, names[::2])
    make_tables(glue, db, names[1::2], "ICEBERG")
    return names


def test_every_page_is_read_and_each_page_once(
    glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId, many: list[str]
) -> None:
    assert sorted(catalog.list_tables(db)) == many
    assert sorted(catalog.list_lance_tables(db)) == many[::2]
    found = [
        catalog_table.id.name for read in catalog.get_tables(db, many[-3:]) for catalog_table in read.tables
    ]
    assert sorted(found) == many[-3:]
    assert len(glue.sent("GetTables", db.name)) == 9
    assert not glue.sent("GetTable", db.name)


def test_only_names_are_requested_if_they_suffice(
    glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId
) -> None:
    catalog.list_tables(db)
    catalog.list_lance_tables(db)
    asked = [body.get("AttributesToGet") for body in glue.sent("GetTables", db.name)]
    assert asked == [["NAME"], None]


def test_a_failed_page_is_an_error_instead_of_a_shorter_list(
    glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId, many: list[str]
) -> None:
    with glue.faults.on("GetTables", None, *[BROKEN] * 4), pytest.raises(ServiceUnavailableError):
        catalog.list_tables(db)


def test_databases_are_listed_over_pages(glue: GlueDouble, catalog: GlueMetastore, db: NamespaceId) -> None:
    client, names = glue.client("glue"), [f"{db.name}_{number:03}" for number in range(120)]
    for name in names:
        client.create_database(DatabaseInput={"Name": name})
    assert set(names) <= set(catalog.list_namespaces(NamespaceId(())))
    for name in names:
        client.delete_database(Name=name)


@pytest.mark.parametrize("operation", ["list_tables", "list_lance_tables"])
def test_listing_a_missing_database_is_an_error(
    catalog: GlueMetastore, database: str, operation: str
) -> None:
    with pytest.raises(NamespaceNotFoundError):
        getattr(catalog, operation)(NamespaceId.of([database]))


def test_a_table_with_an_invalid_name_is_not_listed_and_keeps_its_database(
    glue: GlueDouble, namespace: GlueNamespace, catalog: GlueMetastore, db: NamespaceId
) -> None:
    make_tables(glue, db, ["a$b", "c"])
    assert namespace.list_tables({"id": [db.name]}).tables == ["c"]
    assert f"{db}$c" in namespace.list_all_tables({}).tables
    with pytest.raises(NamespaceNotEmptyError, match=r"'a\$b'"):
        namespace.drop_namespace({"id": [db.name], "behavior": "cascade"})
    glue.client("glue").delete_table(DatabaseName=db.name, Name="a$b")
    with pytest.raises(TableNotFoundError):
        catalog.get_table(db.table("c"))
