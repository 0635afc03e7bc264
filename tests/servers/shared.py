"""Metastores shared by all processes of a run: the first process that needs one starts and stops it."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import Distribution, MetastoreServer


def shared_metastore(
    request: pytest.FixtureRequest, name: str, distribution: Distribution
) -> MetastoreServer:
    """The run's server of a release. It belongs to one process; others use it, and can't stop it.

    Tests of other processes use it at the same time, each with its own databases. It is released after the
    last test, outside of any test's timeout, since its process waits for the others.
    """
    server = ExitStack()
    request.config.add_cleanup(server.close)
    return server.enter_context(_used(request.getfixturevalue("tmp_path_factory"), name, distribution))


@contextmanager
def _used(
    factory: pytest.TempPathFactory, name: str, distribution: Distribution
) -> Iterator[MetastoreServer]:
    note = _folder_of_run(factory) / f"{name}.json"
    with _locked(note.with_suffix(".lock")):
        running = _running(note, distribution)
        server = running or _started(note, distribution, factory.mktemp(name))
        users = _users_of(server).open("w")
        fcntl.flock(users, fcntl.LOCK_SH)
    try:
        yield server
    finally:
        users.close()
        if not running:
            _stop_after_the_last(server, note)


def _folder_of_run(factory: pytest.TempPathFactory) -> Path:
    """The folder shared by the processes of a run; without xdist, that of this process."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Wait until no other process is in this block. The kernel releases the lock of a killed process."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _users_of(server: MetastoreServer) -> Path:
    """A file locked in shared mode by each process that uses the server, and exclusively to stop it."""
    return server.folder.with_suffix(".users")


def _running(note: Path, distribution: Distribution) -> MetastoreServer | None:
    """The server that another process started, unless it ended with that process."""
    if not note.exists():
        return None
    server = json.loads(note.read_text())
    with suppress(OSError), socket.create_connection(("127.0.0.1", server["port"]), timeout=10):
        return MetastoreServer(distribution, Path(server["folder"]), server["port"])
    return None


def _started(note: Path, distribution: Distribution, folder: Path) -> MetastoreServer:
    server = MetastoreServer(distribution, folder, heap="1g").start()  # for thousands of tables
    note.write_text(json.dumps({"folder": str(folder), "port": int(server.uri.rpartition(":")[2])}))
    return server


def _stop_after_the_last(server: MetastoreServer, note: Path) -> None:
    with ExitStack() as stopping, suppress(FileNotFoundError):  # the folder was removed
        stopping.callback(server.stop)
        with _locked(note.with_suffix(".lock")):
            note.unlink()  # the next process to ask starts another one
        with _users_of(server).open("w") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
