"""The command ``python -m airflow_provider_lancens.embedded``."""

import os
import signal
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore
from tests.integration.embedded.calls import create_database, list_databases
from tests.integration.embedded.processes import ends_within, lives, run_command, serving

pytestmark = pytest.mark.thorough

SECONDS_TO_DIE = 5


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_the_command_serves_until_it_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as command:
        assert "default" in list_databases(command.uri)

        command.process.send_signal(number)

        assert command.finish() == (0, "")
        assert not lives(command.server_pid)


def test_a_killed_command_leaves_no_server_and_no_lock(tmp_path: Path, database: str) -> None:
    with serving(tmp_path) as command:
        create_database(command.uri, database)
        command.process.kill()
        command.process.wait()
        with EmbeddedMetastore(tmp_path) as successor:
            assert ends_within(SECONDS_TO_DIE, command.server_pid)
            assert database in list_databases(successor.uri)


@pytest.mark.long
def test_the_command_exits_with_a_message_when_the_server_dies(tmp_path: Path) -> None:
    with serving(tmp_path) as command:
        os.kill(command.server_pid, signal.SIGKILL)

        code, errors = command.finish()
    assert code == 1
    assert "The metastore exited unexpectedly with code -9" in errors


def test_a_folder_in_use_is_reported_in_one_line_without_a_traceback(metastore: EmbeddedMetastore) -> None:
    with run_command(metastore.folder) as process:
        output, errors = process.communicate(timeout=60)

    assert (process.returncode, output) == (1, "")
    assert metastore.uri in errors
    assert errors.count("\n") == 1
