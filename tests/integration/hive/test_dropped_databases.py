"""Databases that other clients drop with their data: the data of our tables is kept."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pymetastore.hive_metastore import ttypes

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace, Hive3Namespace
from tests.integration.hive.raw import raw_client, raw_database, raw_table
from tests.servers.peer import peer_namespace
from tests.servers.spark_sql import run_sql

ROWS = pa.table({"x": [1, 2, 3]})


def write(namespace: Hive2Namespace | Hive3Namespace, *table: str) -> str:
    """Write a table at its default location, and return the location."""
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=list(table), mode="create")
    location = namespace.describe_table({"id": list(table)}).location
    assert location
    return location


def check_survival(namespace: Hive2Namespace, database: str, location: str) -> None:
    """Check that the database was dropped, and that the data can be registered again."""
    assert database not in namespace.list_namespaces({"id": []}).namespaces
    namespace.create_namespace({"id": [database]})
    namespace.register_table({"id": [database, "again"], "location": location})
    assert lance.dataset(namespace_client=namespace, table_id=[database, "again"]).count_rows() == 3


def drop_by_thrift(uri: str, database: str) -> None:
    with raw_client(uri) as client:
        client.drop_database(database, True, True)


def made_by_hive(uri: str, database: str, location: str | None) -> None:
    with raw_client(uri) as client:
        client.create_database(ttypes.Database(name=database, locationUri=location, parameters={}))


def test_data_survives_a_thrift_drop_of_the_database_with_data(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    location = write(namespace, db, "t")
    folder = Path(raw_database(server.uri, db).locationUri.removeprefix("file:"))
    assert folder.is_dir()
    drop_by_thrift(server.uri, db)
    assert not folder.exists()
    check_survival(namespace, db, location)


@pytest.mark.parametrize(
    "below", [None, "theirs", "theirs.db"], ids=["the warehouse", "elsewhere", "two levels"]
)
def test_data_survives_a_thrift_drop_of_a_database_created_by_hive(
    server: MetastoreServer, namespace: Hive2Namespace, database: str, tmp_path: Path, below: str | None
) -> None:
    made_by_hive(server.uri, database, below and f"file://{tmp_path}/lake/{below}")
    location = write(namespace, database, "t")
    drop_by_thrift(server.uri, database)
    check_survival(namespace, database, location)
    namespace.drop_namespace({"id": [database], "behavior": "cascade"})


def test_data_survives_a_thrift_drop_after_deregistration(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    location = write(namespace, db, "t")
    namespace.deregister_table({"id": [db, "t"]})
    with raw_client(server.uri) as client:
        client.drop_database(db, True, False)
    check_survival(namespace, db, location)


@pytest.mark.slow
@pytest.mark.parametrize("release", [pytest.param("hms3", marks=pytest.mark.thorough), "hms4"])
def test_data_survives_a_thrift_drop_of_the_catalog(
    release: str, request: pytest.FixtureRequest, database: str, tmp_path: Path
) -> None:
    server: MetastoreServer = request.getfixturevalue(release)
    catalog = f"cat_{database}"
    with Hive3Namespace(uri=server.uri, root=str(tmp_path / "root")) as namespace:
        namespace.create_namespace({"id": [catalog]})
        namespace.create_namespace({"id": [catalog, "db"]})
        locations = [write(namespace, catalog, name, "t") for name in ("db", "default")]
        with raw_client(server.uri) as client:
            for name in ("default", "db"):
                client.drop_database(f"@{catalog}#{name}", True, True)
            client.drop_catalog(ttypes.DropCatalogRequest(catalog))
        assert not (tmp_path / "root" / catalog).exists()
        assert [lance.dataset(location).count_rows() for location in locations] == [3, 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "deregistered"),
    [
        ("2.3.10", False),
        pytest.param("2.3.10", True, marks=pytest.mark.long),
        pytest.param("3.1.3", False, marks=pytest.mark.long),
        pytest.param("3.1.3", True, marks=pytest.mark.thorough),
    ],
    indirect=["server"],
)
def test_data_survives_a_drop_by_lance_namespace_impls(
    server: MetastoreServer, namespace: Hive2Namespace, db: str, tmp_path: Path, deregistered: bool
) -> None:
    location = write(namespace, db, "t")
    properties = {"uri": server.uri, "root": str(tmp_path / "root")}
    with peer_namespace("hive2", "Hive2Namespace", properties) as peer:
        if deregistered:
            namespace.deregister_table({"id": [db, "t"]})
        else:
            peer.deregister_table(id=[db, "t"])
        peer.drop_namespace(id=[db])
    check_survival(namespace, db, location)


@pytest.mark.parametrize(
    ("server", "deregistered"),
    [
        pytest.param("2.3.10", False, marks=pytest.mark.slow),
        pytest.param("3.1.3", False, marks=pytest.mark.long),
        # Spark's Hive client can't drop a table on 4.0.1, which no longer has `get_table`.
        pytest.param("4.0.1", True, marks=pytest.mark.long),
    ],
    indirect=["server"],
)
def test_data_survives_a_spark_sql_drop_cascade(
    server: MetastoreServer, namespace: Hive2Namespace, db: str, tmp_path: Path, deregistered: bool
) -> None:
    location = write(namespace, db, "t")
    if deregistered:
        namespace.deregister_table({"id": [db, "t"]})
    assert run_sql(server.uri, tmp_path, f"DROP DATABASE {db} CASCADE") == [{"rows": []}]
    check_survival(namespace, db, location)


@pytest.mark.long
@pytest.mark.parametrize("server", ["2.3.10"], indirect=True)
def test_spark_sql_changes_no_catalog_table_and_purges_no_data(
    server: MetastoreServer, namespace: Hive2Namespace, db: str, tmp_path: Path
) -> None:
    location = write(namespace, db, "t")
    before = raw_table(server.uri, db, "t")
    described, altered = run_sql(
        server.uri, tmp_path, f"DESCRIBE {db}.t", f"ALTER TABLE {db}.t SET TBLPROPERTIES ('version'='0')"
    )
    assert described == {"rows": []}
    # Without the class of the input format, which no Spark has; with it, since the table has no column.
    assert "ClassNotFoundException: org.lance.mapred.LanceInputFormat" in altered["error"]
    assert raw_table(server.uri, db, "t") == before

    purged = run_sql(server.uri, tmp_path, f"DROP TABLE {db}.t PURGE", f"DROP DATABASE {db}")
    assert purged == [{"rows": []}, {"rows": []}]
    check_survival(namespace, db, location)
