"""Fields of other writers survive our changes of a catalog table, including those of newer Hive versions."""

import copy
from pathlib import Path
from typing import Any

import pytest
from pymetastore.hive_metastore import ttypes

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, hive_properties
from airflow_provider_lancens.namespace.metastore_protocol import ParameterChange
from tests.integration.hive.raw import raw_client, raw_table

OURS_TO_CHANGE = {"transient_lastDdlTime", "lastDdlTime"}


def make_rich_table(uri: str, database: str, location: Path) -> Any:
    """Create a Lance table with every field set, and return it as the server stores it."""
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("x", "int", "a number"), ttypes.FieldSchema("y", "struct<a:int>", None)],
        location=f"file:{location}",
        inputFormat="theirs.Input",
        outputFormat="theirs.Output",
        compressed=True,
        numBuckets=4,
        serdeInfo=ttypes.SerDeInfo("serde", "theirs.SerDe", {"sep": ","}),
        bucketCols=["x"],
        sortCols=[ttypes.Order("x", 1)],
        parameters={"storage": "kept"},
        skewedInfo=ttypes.SkewedInfo(["x"], [["1"]], {}),
        storedAsSubDirectories=False,
    )
    table = ttypes.Table(
        tableName="t",
        dbName=database,
        owner="ana",
        ownerType=ttypes.PrincipalType.ROLE,
        retention=30,
        sd=storage,
        partitionKeys=[ttypes.FieldSchema("day", "string", "of arrival")],
        parameters={"table_type": "LANCE", "EXTERNAL": "TRUE", "theirs": "kept", "comment": "höchst wichtig"},
        tableType="EXTERNAL_TABLE",
        rewriteEnabled=True,
    )
    with raw_client(uri) as client:
        client.create_table(table)
    return raw_table(uri, database, "t")


def without_times(catalog_table: Any) -> Any:
    plain = copy.deepcopy(catalog_table)
    plain.parameters = {k: v for k, v in plain.parameters.items() if k not in OURS_TO_CHANGE}
    return plain


def test_an_update_changes_the_parameters_it_names_and_nothing_else(
    server: MetastoreServer, db: str, tmp_path: Path
) -> None:
    before = make_rich_table(server.uri, db, tmp_path / "t")
    metastore = HiveMetastore(ClientSettings.parse(hive_properties({"uri": server.uri})))
    change = ParameterChange(set={"version": "7"}, remove=["comment"])
    metastore.update_table(TableId.of([db, "t"]), lambda catalog_table: change)

    expected = without_times(before)
    del expected.parameters["comment"]
    expected.parameters["version"] = "7"
    assert without_times(raw_table(server.uri, db, "t")) == expected


def test_a_rename_changes_the_name_and_nothing_else(
    server: MetastoreServer, namespace: Hive2Namespace, db: str, tmp_path: Path
) -> None:
    before = make_rich_table(server.uri, db, tmp_path / "t")
    namespace.rename_table({"id": [db, "t"], "new_table_name": "u"})
    expected = without_times(before)
    expected.tableName = "u"
    assert without_times(raw_table(server.uri, db, "u")) == expected


def test_a_rename_into_another_database_leaves_the_files(
    server: MetastoreServer, namespace: Hive2Namespace, db: str, tmp_path: Path
) -> None:
    other = f"{db}_other"
    namespace.create_namespace({"id": [other]})
    before = make_rich_table(server.uri, db, tmp_path / "t")
    namespace.rename_table({"id": [db, "t"], "new_table_name": "t", "new_namespace_id": [other]})
    assert raw_table(server.uri, other, "t").sd == before.sd
    namespace.deregister_table({"id": [other, "t"]})
    namespace.drop_namespace({"id": [other]})


@pytest.mark.parametrize("operation", ["deregister_table", "drop_table"])
def test_foreign_files_are_kept_when_their_table_is_deregistered(
    server: MetastoreServer, namespace: Hive2Namespace, db: str, tmp_path: Path, operation: str
) -> None:
    make_rich_table(server.uri, db, tmp_path / "t")
    (tmp_path / "t").mkdir(exist_ok=True)
    (tmp_path / "t" / "part-0.csv").write_text("1,2")
    getattr(namespace, operation)({"id": [db, "t"]})
    assert (tmp_path / "t" / "part-0.csv").read_text() == "1,2"
