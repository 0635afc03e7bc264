"""Locations of tables, and warnings about unsafe ones."""

import logging
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.hive.raw import raw_database, raw_table

ONE_RELEASE = pytest.mark.parametrize("server", ["2.3.10"], indirect=True)
DANGER = "is deleted as a whole if any client drops"


@ONE_RELEASE
@pytest.mark.parametrize("operation", ["declare_table", "register_table"])
def test_a_location_inside_the_databases_folder_logs_a_warning(
    server: MetastoreServer,
    namespace: Hive2Namespace,
    db: str,
    caplog: pytest.LogCaptureFixture,
    operation: str,
) -> None:
    below = raw_database(server.uri, db).locationUri.removeprefix("file:") + "/t.lance"
    assert getattr(namespace, operation)({"id": [db, "t"], "location": below}).location == below
    assert DANGER in caplog.text
    assert "omit the location" in caplog.text


@ONE_RELEASE
def test_a_location_elsewhere_or_none_logs_no_warning(
    namespace: Hive2Namespace, db: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    namespace.declare_table({"id": [db, "t"]})
    namespace.declare_table({"id": [db, "u"], "location": str(tmp_path / "u.lance")})
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@ONE_RELEASE
def test_an_existing_table_keeps_its_location(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    old = raw_database(server.uri, db).locationUri.removeprefix("file:") + "/t.lance"
    namespace.declare_table({"id": [db, "t"], "location": old})
    lance.write_dataset(pa.table({"x": [1]}), old)
    more = pa.table({"x": [2]})
    lance.write_dataset(more, namespace_client=namespace, table_id=[db, "t"], mode="append")
    assert raw_table(server.uri, db, "t").sd.location == f"file:{old}"
    assert lance.dataset(namespace_client=namespace, table_id=[db, "t"]).count_rows() == 2
    namespace.drop_table({"id": [db, "t"]})
    assert not Path(old).exists()


@ONE_RELEASE
def test_a_namespace_around_root_logs_a_warning(
    server: MetastoreServer, database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Hive2Namespace(uri=server.uri, root=str(tmp_path / "lake")) as namespace:
        namespace.create_namespace({"id": [database], "properties": {"database.location-uri": str(tmp_path)}})
        assert f"contains root, {tmp_path}/lake" in caplog.text
        namespace.drop_namespace({"id": [database]})


def test_a_folder_that_the_metastore_cannot_create_is_reported_with_what_to_do(
    server: MetastoreServer, namespace: Hive2Namespace, db: str
) -> None:
    folder = Path(raw_database(server.uri, db).locationUri.removeprefix("file:") + "-lance")
    folder.write_text("in the way")
    with pytest.raises(LanceNamespaceError, match="give the table a location") as refused:
        namespace.declare_table({"id": [db, "t"]})
    assert str(folder) in str(refused.value)
    assert namespace.list_tables({"id": [db]}).tables == []
