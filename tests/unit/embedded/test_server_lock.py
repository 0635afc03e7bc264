"""One server per folder. Each `locked` opens the file again, and so competes for the lock."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded.exceptions import FolderInUseError
from airflow_provider_lancens.embedded.server import LOCK_FILE, Holder, locked, record_holder


@pytest.fixture
def dead_pid() -> int:
    with subprocess.Popen(["true"]) as process:
        return process.pid


def test_a_locked_folder_is_refused_with_its_owners_pid(tmp_path: Path) -> None:
    with locked(tmp_path):
        record_holder(tmp_path, Holder(pid=7, owner=os.getpid(), uri="thrift://127.0.0.1:9083"))
        with pytest.raises(FolderInUseError, match=r"serving thrift://127.0.0.1:9083 \(pid 7, started by"):
            locked(tmp_path).__enter__()


def test_a_starting_server_holds_the_lock(tmp_path: Path) -> None:
    with locked(tmp_path):
        record_holder(tmp_path, Holder(pid=7, owner=os.getpid()))
        with pytest.raises(FolderInUseError, match=r"a metastore starting \(pid 7"):
            locked(tmp_path).__enter__()


def test_a_holder_of_another_user_counts_as_alive(tmp_path: Path) -> None:
    with locked(tmp_path):
        record_holder(tmp_path, Holder(pid=1, owner=1))
        with pytest.raises(FolderInUseError):
            locked(tmp_path).__enter__()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"other": 1}'])
def test_an_unreadable_lock_record_still_counts_as_locked(tmp_path: Path, content: str) -> None:
    with locked(tmp_path):
        (tmp_path / LOCK_FILE).write_text(content)
        with pytest.raises(FolderInUseError, match="in use by another process"):
            locked(tmp_path).__enter__()


def test_an_unlocked_lock_file_is_ignored(tmp_path: Path) -> None:
    record_holder(tmp_path, Holder(pid=os.getpid(), owner=os.getpid(), uri="thrift://127.0.0.1:9083"))
    with locked(tmp_path):
        pass


def test_the_server_of_a_dead_owner_is_waited_for(tmp_path: Path, dead_pid: int) -> None:
    held, release = threading.Event(), threading.Event()

    def orphan() -> None:
        with locked(tmp_path):
            record_holder(tmp_path, Holder(pid=7, owner=dead_pid))
            held.set()
            release.wait(5)

    thread = threading.Thread(target=orphan)
    thread.start()
    held.wait(5)
    threading.Timer(0.2, release.set).start()
    with locked(tmp_path):
        assert release.is_set()
    thread.join()
