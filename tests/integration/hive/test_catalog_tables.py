"""Catalog tables on real servers are correct for every other reader."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import UnsupportedOperationError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace, Hive3Namespace
from tests.integration.hive.raw import raw_client, raw_database, raw_table

STATISTICS = {"numFiles", "totalSize", "numRows", "rawDataSize"}


def test_a_declared_table_stays_external_and_its_data_survives_any_drop(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    table = [db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    catalog_table = raw_table(server.uri, db, "t")
    assert catalog_table.tableType == "EXTERNAL_TABLE"
    assert catalog_table.parameters["EXTERNAL"] == "TRUE"
    assert catalog_table.parameters["table_type"] == "lance"
    assert "external.table.purge" not in catalog_table.parameters

    with raw_client(server.uri) as client:
        client.drop_table(db, "t", True)
    assert lance.dataset(catalog_table.sd.location.removeprefix("file:")).count_rows() == 1


def test_an_engine_without_lance_does_not_read_the_data_as_text(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    namespace.declare_table({"id": [db, "t"]})
    storage = raw_table(server.uri, db, "t").sd
    assert storage.inputFormat == "org.lance.mapred.LanceInputFormat"
    assert storage.outputFormat == "org.lance.mapred.LanceOutputFormat"
    assert not storage.serdeInfo.serializationLib


def test_a_catalog_table_has_no_file_statistics(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    namespace.declare_table({"id": [db, "t"]})
    namespace.rename_table({"id": [db, "t"], "new_table_name": "u"})
    assert not STATISTICS & raw_table(server.uri, db, "u").parameters.keys()


def test_other_clients_see_a_namespaces_properties(
    server: MetastoreServer, namespace: Hive2Namespace, database: str, tmp_path: Path
) -> None:
    properties = {
        "database.description": "clicks",
        "database.location-uri": str(tmp_path / "place"),
        "database.owner": "ana",
        "database.owner-type": "ROLE",
        "team": "search",
    }
    namespace.create_namespace({"id": [database], "properties": properties})
    raw = raw_database(server.uri, database)
    assert raw.description == "clicks"
    assert raw.locationUri == f"file:{tmp_path}/place"
    assert (raw.ownerName, raw.ownerType) == ("ana", 2)
    assert raw.parameters == {"team": "search"}
    namespace.drop_namespace({"id": [database]})


@pytest.mark.parametrize("operation", ["create_namespace", "list_namespaces", "namespace_exists"])
def test_a_hive_3_namespace_is_refused_by_a_2_x_server_and_writes_nothing(
    metastore: MetastoreServer, operation: str, database: str
) -> None:
    namespace = Hive3Namespace(uri=metastore.uri, root="/nowhere")
    with pytest.raises(UnsupportedOperationError, match="use Hive2Namespace"):
        getattr(namespace, operation)({"id": ["hive", database]})
    with raw_client(metastore.uri) as client:
        assert not [name for name in client.get_all_databases() if database in name or "hive" in name]
