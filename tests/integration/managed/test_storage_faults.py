"""Failures of the storage while a commit is published: the commit is valid and readable."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from lance_namespace.errors import (
    ErrorCode,
    PermissionDeniedError,
    ServiceUnavailableError,
    UnauthenticatedError,
)

from airflow_provider_lancens.namespace.storage.manifests import Manifests
from tests.conformance.codes import refused_with
from tests.integration.managed.commit_points import POINTS, SimulatedDeath, simulate_death
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake, on_lakes_in_turn

FAULTS = [
    PermissionDeniedError("denied"),
    UnauthenticatedError("expired"),
    ServiceUnavailableError("busy"),
    RuntimeError("an unexpected error"),
]
NAMING = "_versions/"


@contextmanager
def refusing(step: str, error: Exception, folder: str = "") -> Iterator[None]:
    """Refuse to create, read or remove anything in a folder."""
    real: Callable[..., Any] = getattr(Manifests, step)

    def attempt(self: Manifests, *arguments: Any) -> Any:
        if arguments[0].startswith(folder):
            raise error
        return real(self, *arguments)

    with patch.object(Manifests, step, attempt):
        yield


@pytest.fixture
def unfinished(table: ManagedTable) -> ManagedTable:
    """A table whose version 2, with row 2, is committed, but not published."""
    request = table.stage(2)
    with POINTS["after-the-commit"].ended_by(simulate_death), pytest.raises(SimulatedDeath):
        table.commit(request)
    return table


@on_lakes_in_turn("error", {type(error).__name__: error for error in FAULTS})
def test_a_commit_that_cannot_be_published_succeeds_and_is_readable(
    table: ManagedTable, error: Exception
) -> None:
    with refusing("create", error, NAMING):
        assert table.append(2) == 2
        if not isinstance(error, RuntimeError):
            assert table.rows() == [1, 2]
        assert table.finals == [1]
    assert table.append(3) == 3
    assert table.rows() == table.rows_by_path() == [1, 2, 3]
    assert table.staged == table.recorded == []


def test_manifests_that_cannot_be_removed_cause_no_error(table: ManagedTable) -> None:
    with refusing("remove", PermissionDeniedError("denied")):
        for row in (2, 3):
            table.append(row)
            assert table.rows() == table.rows_by_path()
    assert table.append(4) == 4
    assert table.rows() == [1, 2, 3, 4]
    assert table.namespace.compare_table(table.parts).verdict == "consistent"


@pytest.mark.parametrize("step", ["create", "read"])
def test_a_commit_that_cannot_be_recorded_is_refused(table: ManagedTable, step: str) -> None:
    request = table.stage(2)
    with refusing(step, ServiceUnavailableError("busy")), refused_with(ErrorCode.SERVICE_UNAVAILABLE):
        table.commit(request)
    assert (table.version, table.rows()) == (1, [1])
    assert table.commit(request).version == 2


def test_a_reader_without_write_permission_reads_and_changes_nothing(unfinished: ManagedTable) -> None:
    before = unfinished.files("")
    with refusing("create", PermissionDeniedError("denied")):
        assert unfinished.rows() == [1, 2]
        assert unfinished.open(2).count_rows() == 2
        assert unfinished.namespace.compare_table(unfinished.parts).verdict == "consistent"
    assert unfinished.files("") == before


def test_a_writer_refuses_to_build_on_a_commit_it_cannot_publish(unfinished: ManagedTable) -> None:
    with refusing("create", PermissionDeniedError("denied"), NAMING), pytest.raises(OSError, match="unknown"):
        unfinished.append(3)
    assert unfinished.append(3) == 3
    assert unfinished.rows() == [1, 2, 3]


def test_lances_clean_up_keeps_an_unfinished_commit(unfinished: ManagedTable) -> None:
    cleaned = unfinished.open_by_path().cleanup_old_versions(older_than=timedelta(0))
    assert cleaned.data_files_removed == 0
    assert len(unfinished.recorded) == len(unfinished.staged) == 1
    assert unfinished.rows() == [1, 2]


def test_a_clean_up_through_the_namespace_publishes_unfinished_commits_first(
    unfinished: ManagedTable,
) -> None:
    unfinished.open().cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert unfinished.finals == [2]
    assert unfinished.rows() == unfinished.rows_by_path() == [1, 2]
    assert unfinished.append(3) == 3


def test_a_staged_manifest_removed_after_its_commit_is_not_needed(unfinished: ManagedTable) -> None:
    unfinished.remove(unfinished.staged[0])
    assert unfinished.rows() == unfinished.rows_by_path() == [1, 2]


def test_a_storage_restored_from_backup_is_reported(hive: Lake, database: str, tmp_path: Path) -> None:
    table = hive.declare(database)
    table.append(1)
    location, backup = Path(table.location), tmp_path / "backup"
    shutil.copytree(location, backup)
    table.append(2)
    shutil.rmtree(location)
    backup.rename(location)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "restored"):
        table.namespace.describe_table_version({"id": table.parts, "version": 2})
    assert table.namespace.adopt_table(table.parts).verdict == "metastore_ahead"
    assert table.append(3) == 2
    assert table.rows() == [1, 3]
