"""Failures to start: they are reported, and leave nothing running."""

import socket
from pathlib import Path

import psutil
import pytest
from py4j import java_gateway
from pyspark.errors.exceptions.captured import install_exception_handler

from airflow_provider_lancens.embedded import (
    EmbeddedMetastore,
    EmbeddedMetastoreError,
    JavaUnsuitableError,
    MetastoreServer,
    MetastoreStartError,
)
from airflow_provider_lancens.embedded.server import pyspark_distribution
from tests.integration.embedded.calls import list_databases
from tests.integration.embedded.processes import listening_addresses
from tests.servers.small_disk import small_disk

pytestmark = pytest.mark.thorough

ODD_ENVIRONMENT = {
    "SPARK_HOME": "/nowhere",
    "SPARK_CONF_DIR": "/nowhere",
    "SPARK_SUBMIT_OPTS": "-Xbogus",
    "PYSPARK_PYTHON": "/nowhere/python",
    "PYSPARK_SUBMIT_ARGS": "bogus",
    "HIVE_CONF_DIR": "/nowhere",
    "HADOOP_CONF_DIR": "/nowhere",
    "JAVA_TOOL_OPTIONS": "-Xbogus",
    "CLASSPATH": "/nowhere",
}


def children() -> set[psutil.Process]:
    return set(psutil.Process().children())


def test_the_server_listens_only_on_loopback(metastore: EmbeddedMetastore) -> None:
    addresses = {address.removeprefix("::ffff:") for address in listening_addresses(metastore.pid)}
    assert addresses == {"127.0.0.1"}


def test_unusual_environment_variables_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ODD_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with EmbeddedMetastore(tmp_path) as server:
        assert list_databases(server.uri) == ["default"]


@pytest.mark.parametrize("fault", ["read-only", pytest.param("full", marks=pytest.mark.long)])
def test_a_read_only_folder_is_reported_and_works_once_writable(tmp_path: Path, fault: str) -> None:
    before = children()
    with small_disk(tmp_path / "disk", megabytes=40) as disk:
        disk.fill() if fault == "full" else disk.mount_read_only()
        with pytest.raises(MetastoreStartError, match="Free up space there, make it writable") as failure:
            EmbeddedMetastore(disk.path).start()
        assert str(disk.path) in str(failure.value)
        assert children() == before
        disk.make_room() if fault == "full" else disk.mount_writable()
        with EmbeddedMetastore(disk.path) as server:
            assert list_databases(server.uri) == ["default"]


def test_a_failed_start_shows_the_end_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "metastore_db").write_text("not a database")
    before = children()

    with pytest.raises(MetastoreStartError) as failure:
        EmbeddedMetastore(tmp_path).start()

    message = str(failure.value)
    assert f"Hive Metastore 2.3.10 did not start in {tmp_path}" in message
    assert "Caused by: " in message
    assert children() == before


@pytest.mark.long
def test_a_failed_start_names_its_cause_where_spark_handles_exceptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "metastore_db").write_text("not a database")
    monkeypatch.setattr(java_gateway, "get_return_value", java_gateway.get_return_value)
    install_exception_handler()

    with pytest.raises(MetastoreStartError, match=r"did not start in .*: .*metastore_db"):
        EmbeddedMetastore(tmp_path).start()


def test_a_start_is_aborted_at_its_timeout(tmp_path: Path) -> None:
    before = children()
    server = MetastoreServer(pyspark_distribution(), tmp_path, start_timeout=0.5)

    with pytest.raises(MetastoreStartError, match=r"it was not ready within 0.5 seconds"):
        server.start()

    assert children() == before


def test_java_options_that_java_refuses_are_shown(tmp_path: Path) -> None:
    with pytest.raises(MetastoreStartError, match="Invalid maximum heap size: -Xmxmuch"):
        EmbeddedMetastore(tmp_path, heap="much").start()


def test_a_port_in_use_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(MetastoreStartError, match=f"Port {port} on 127.0.0.1 cannot be opened"):
            EmbeddedMetastore(tmp_path, port).start()
    assert not (tmp_path / "metastore.log").exists()


def test_a_missing_java_is_reported_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    folder = tmp_path / "untouched"

    with pytest.raises(JavaUnsuitableError):
        EmbeddedMetastore(folder).start()

    assert not folder.exists()


def test_a_folder_that_derby_could_not_reopen_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedMetastoreError, match="Choose a folder without ':'"):
        EmbeddedMetastore(tmp_path / "a:b")


def test_a_server_that_was_not_started_has_no_uri(tmp_path: Path) -> None:
    server = EmbeddedMetastore(tmp_path)
    for ask in (lambda: server.uri, lambda: server.pid, server.kill, server.wait):
        with pytest.raises(EmbeddedMetastoreError, match=r"start|started"):
            ask()
    server.stop()
