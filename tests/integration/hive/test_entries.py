"""Entries on the real servers are right for every other reader."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import UnsupportedOperationError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace, Hive3Namespace
from tests.integration.hive.raw import raw_client, raw_database, raw_table

STATISTICS = {"numFiles", "totalSize", "numRows", "rawDataSize"}


def test_a_declared_table_stays_external_and_nobodys_drop_deletes_its_data(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    table = [db, "t"]
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=namespace, table_id=table, mode="create")
    entry = raw_table(server.uri, db, "t")
    assert entry.tableType == "EXTERNAL_TABLE"
    assert entry.parameters["EXTERNAL"] == "TRUE"
    assert entry.parameters["table_type"] == "lance"
    assert "external.table.purge" not in entry.parameters

    with raw_client(server.uri) as client:
        client.drop_table(db, "t", True)
    assert lance.dataset(entry.sd.location.removeprefix("file:")).count_rows() == 1


def test_an_engine_without_lance_reads_nothing_as_text(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    namespace.declare_table({"id": [db, "t"]})
    storage = raw_table(server.uri, db, "t").sd
    assert storage.inputFormat == "org.lance.mapred.LanceInputFormat"
    assert storage.outputFormat == "org.lance.mapred.LanceOutputFormat"
    assert not storage.serdeInfo.serializationLib


def test_an_entry_carries_no_count_of_files(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    namespace.declare_table({"id": [db, "t"]})
    namespace.rename_table({"id": [db, "t"], "new_table_name": "u"})
    assert not STATISTICS & raw_table(server.uri, db, "u").parameters.keys()


def test_a_namespace_is_described_to_others_as_its_creator_said(
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
    entry = raw_database(server.uri, database)
    assert entry.description == "clicks"
    assert entry.locationUri == f"file:{tmp_path}/place"
    assert (entry.ownerName, entry.ownerType) == ("ana", 2)
    assert entry.parameters == {"team": "search"}
    namespace.drop_namespace({"id": [database]})


@pytest.mark.parametrize("operation", ["create_namespace", "list_namespaces", "namespace_exists"])
def test_a_hive_3_namespace_is_refused_by_a_2_x_server_and_writes_nothing(
    metastore: MetastoreServer, operation: str, database: str
) -> None:
    with raw_client(metastore.uri) as client:
        before = client.get_all_databases()
    namespace = Hive3Namespace(uri=metastore.uri, root="/nowhere")
    with pytest.raises(UnsupportedOperationError, match="use Hive2Namespace"):
        getattr(namespace, operation)({"id": ["hive", database]})
    with raw_client(metastore.uri) as client:
        assert client.get_all_databases() == before
