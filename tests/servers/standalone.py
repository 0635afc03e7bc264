"""Hive Metastore 4.0.1 started by its ``main``, for its support of TLS and SASL."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from airflow_provider_lancens.embedded.java import clean_environment, find_java
from airflow_provider_lancens.embedded.server import COMMON_SETTINGS
from tests.servers.hadoop import HOST, free_port, site_xml
from tests.servers.releases import hms_4

MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
START_SECONDS = 120


@contextlib.contextmanager
def standalone_metastore(
    folder: Path,
    settings: Mapping[str, str],
    hadoop: Mapping[str, str] | None = None,
    java_options: Sequence[str] = (),
) -> Iterator[int]:
    """Run it with its data in a folder; yield its loopback port.

    Args:
        folder: of its data and its log.
        settings: of the metastore.
        hadoop: Hadoop settings.
        java_options: additional Java options.
    """
    distribution, port = hms_4(), free_port()
    site = {
        **COMMON_SETTINGS,
        **distribution.settings,
        "metastore.warehouse.dir": f"file:{folder}/warehouse",
        "metastore.thrift.bind.host": HOST,
        **settings,
    }
    (folder / "metastore-site.xml").write_text(site_xml(site))
    (folder / "core-site.xml").write_text(site_xml(hadoop or {}))
    class_path = os.pathsep.join([str(folder), *distribution.class_path])
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *java_options, "-cp", class_path]
    with (folder / "metastore.log").open("wb") as log:
        process = subprocess.Popen(
            [find_java(distribution.java), *options, MAIN, "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=clean_environment(),
        )
    try:
        _wait_for(port, process, folder / "metastore.log")
        yield port
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"The metastore did not start:\n{log.read_text()[-3000:]}")
