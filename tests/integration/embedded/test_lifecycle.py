"""The server's life cycle: start, stop, kill and restart."""

import os
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore, FolderInUseError, MetastoreStartError
from tests.integration.embedded.calls import create_database, list_databases


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A path with characters that need quoting."""
    return tmp_path / "my data $HOME"


def test_a_started_server_accepts_calls(metastore: EmbeddedMetastore) -> None:
    assert "default" in list_databases(metastore.uri)


def test_the_folder_of_a_database_does_not_copy_the_permissions_of_its_parent(
    metastore: EmbeddedMetastore, database: str, tmp_path: Path
) -> None:
    """Copying them takes several processes for each database and table."""
    tmp_path.chmod(0o700)

    create_database(metastore.uri, database, tmp_path / database)

    assert (tmp_path / database).stat().st_mode & 0o777 == 0o755


def test_a_stopped_server_leaves_no_process_and_its_databases_can_be_served_on_another_port(
    folder: Path, database: str
) -> None:
    with EmbeddedMetastore(folder) as first:
        create_database(first.uri, database)
        pid = first.pid

    assert not first.running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    first.stop()
    with EmbeddedMetastore(folder) as second:
        assert database in list_databases(second.uri)


def test_a_killed_server_restarts_on_its_port_with_its_data(folder: Path, database: str) -> None:
    with EmbeddedMetastore(folder) as server:
        create_database(server.uri, database)
        uri, pid = server.uri, server.pid
        server.kill()
        assert not server.running
        assert server.uri == uri

        server.start()

        assert server.uri == uri
        assert server.pid != pid
        assert database in list_databases(uri)


def test_a_second_server_on_the_folder_is_refused_with_the_first_ones_pid(
    metastore: EmbeddedMetastore,
) -> None:
    with pytest.raises(FolderInUseError) as refusal:
        EmbeddedMetastore(metastore.folder).start()

    message = str(refusal.value)
    assert metastore.uri in message
    assert f"pid {metastore.pid}, started by pid {os.getpid()}" in message


def test_starting_a_running_server_is_refused(metastore: EmbeddedMetastore) -> None:
    with pytest.raises(MetastoreStartError, match="already serving thrift://"):
        metastore.start()
    assert metastore.running
