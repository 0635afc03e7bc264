"""Updates of catalog tables: by VersionId, and without losing foreign fields."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from lance_namespace.errors import ConcurrentModificationError, TableNotFoundError, UnsupportedOperationError
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from airflow_provider_lancens.namespace.glue.settings import GlueSettings, glue_properties
from airflow_provider_lancens.namespace.metastore_protocol import (
    CatalogTable,
    Expectation,
    Namespace,
    ParameterChange,
)
from tests.servers.glue_double import GlueDouble
from tests.servers.glue_faults import LOST_REPLY

THREADS, INCREMENTS = 8, 10


def read(glue: GlueDouble, table: CatalogTable) -> dict[str, Any]:
    answer = glue.client("glue").get_table(DatabaseName=table.id.namespace.name, Name=table.id.name)
    return dict(answer["Table"])


def advance(catalog_table: CatalogTable) -> ParameterChange:
    """Advance a table from its version to the next."""
    version = catalog_table.parameters["version"]
    return ParameterChange({"version": str(int(version) + 1)}, expect=Expectation("version", version))


def test_an_update_sends_the_version_it_read_and_skips_the_archive(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable
) -> None:
    for _ in range(2):
        catalog.update_table(table.id, advance)
    sent = [
        body
        for body in glue.sent("UpdateTable", table.id.namespace.name)
        if body["TableInput"]["Name"] == table.id.name
    ]
    assert [body["VersionId"] for body in sent] == ["0", "1"]
    assert all(body["SkipArchive"] for body in sent)


def test_an_update_keeps_foreign_fields(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable
) -> None:
    foreign = {
        "Name": table.id.name,
        "Description": "theirs",
        "Owner": "ana",
        "Retention": 7,
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [{"Name": "day", "Type": "date"}],
        "StorageDescriptor": {"Columns": [{"Name": "x", "Type": "int"}], "Location": "s3://bucket/moved"},
        "Parameters": {"table_type": "lance", "theirs": "1", "old": "1", "version": "0"},
    }
    glue.client("glue").update_table(DatabaseName=table.id.namespace.name, TableInput=foreign)
    update = catalog.update_table(table.id, lambda _: ParameterChange({"new": "1"}, remove=["old"]))
    found = read(glue, table)
    assert found.pop("Parameters") == {"table_type": "lance", "theirs": "1", "version": "0", "new": "1"}
    assert {key: found[key] for key in foreign if key != "Parameters"} == {
        key: value for key, value in foreign.items() if key != "Parameters"
    }
    assert (update.table, update.changed) == (catalog.get_table(table.id), True)


def test_an_unmet_expectation_changes_nothing(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable
) -> None:
    before = read(glue, table)
    stale = ParameterChange({"version": "9"}, expect=Expectation("version", "8"))
    with pytest.raises(ConcurrentModificationError, match="'version' is '0', expected '8'"):
        catalog.update_table(table.id, lambda _: stale)
    assert read(glue, table) == before


def test_a_concurrent_foreign_update_is_not_lost(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable
) -> None:
    client, seen = glue.client("glue"), []

    def decide(catalog_table: CatalogTable) -> ParameterChange:
        seen.append(catalog_table)
        if len(seen) == 1:  # a concurrent update after the read
            foreign = {"Name": table.id.name, "Parameters": {**catalog_table.parameters, "theirs": "1"}}
            client.update_table(DatabaseName=table.id.namespace.name, TableInput=foreign)
        return ParameterChange({"ours": "1"}, expect=Expectation("version", "0"))

    catalog.update_table(table.id, decide)
    assert {"ours": "1", "theirs": "1"}.items() <= catalog.get_table(table.id).parameters.items()
    assert len(seen) == 2


def test_an_update_already_made_by_another_client_reports_no_change(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable
) -> None:
    client = glue.client("glue")

    def decide(catalog_table: CatalogTable) -> ParameterChange | None:
        if "note" in catalog_table.parameters:
            return None
        foreign = {"Name": table.id.name, "Parameters": {**catalog_table.parameters, "note": "1"}}
        client.update_table(DatabaseName=table.id.namespace.name, TableInput=foreign)
        return ParameterChange({"note": "1"})

    update = catalog.update_table(table.id, decide)
    assert (update.table.parameters["note"], update.changed) == ("1", False)


def test_updating_a_missing_table_is_refused(catalog: GlueMetastore, db: NamespaceId) -> None:
    with pytest.raises(TableNotFoundError):
        catalog.update_table(db.table("missing"), advance)


def test_an_update_with_a_lost_reply_is_applied_once(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable
) -> None:
    catalog.require_compare_and_set(table.id.namespace)
    with glue.faults.on("UpdateTable", LOST_REPLY):
        catalog.update_table(table.id, advance)
    assert catalog.get_table(table.id).parameters["version"] == "1"
    assert read(glue, table)["VersionId"] == "1"


def test_concurrent_increments_are_all_counted(
    glue: GlueDouble, catalog: GlueMetastore, table: CatalogTable
) -> None:
    another = GlueMetastore(GlueSettings.parse(glue_properties(glue.properties)))

    def increment(thread: int) -> None:
        for _ in range(INCREMENTS):
            (catalog if thread % 2 else another).update_table(table.id, advance)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(increment, range(THREADS)))
    another.close()
    found = read(glue, table)
    assert found["Parameters"]["version"] == found["VersionId"] == str(THREADS * INCREMENTS)
    assert (
        len(glue.sent("UpdateTable", table.id.namespace.name)) > THREADS * INCREMENTS
    )  # there were conflicts


def test_a_server_that_ignores_version_ids_is_detected(database: str) -> None:
    lenient = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    lenient.start()
    host, port = lenient.get_host_and_port()
    properties = {"endpoint": f"http://{host}:{port}", "region": "eu-west-3"}
    keys = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "x"}
    catalog = GlueMetastore(GlueSettings.parse(glue_properties({**properties, **keys})))
    db = NamespaceId.of([database])
    try:
        catalog.create_namespace(Namespace(db))
        catalog.create_table(CatalogTable(db.table("t"), "s3://b/t", {"version": "0"}))
        with pytest.raises(UnsupportedOperationError, match="ignores the VersionId"):
            catalog.update_table(db.table("t"), advance)
        assert catalog.get_table(db.table("t")).parameters["version"] == "0"
        assert catalog.list_tables(db) == ["t"]
        catalog.update_table(db.table("t"), lambda _: ParameterChange({"courtesy": "1"}))
    finally:
        lenient.stop()
