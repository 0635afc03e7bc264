"""Direct writers of managed tables: their commits are reported, not lost, and shown only once adopted."""

import logging
from collections.abc import Callable

import lancedb
import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.managed.publication import Publication
from airflow_provider_lancens.spark.commit.delete import delete_rows
from tests.conformance.codes import refused_with
from tests.integration.managed.commit_points import POINTS, Point, SimulatedDeath, simulate_death
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake


@pytest.fixture
def diverged(table: ManagedTable) -> ManagedTable:
    """A table whose committed version 2, with row 2, lost its manifest name to a direct writer."""
    request = table.stage(2)
    with POINTS["after-the-commit"].ended_by(simulate_death), pytest.raises(SimulatedDeath):
        table.commit(request)
    assert table.append_directly(20) == 2
    return table


def context(table: ManagedTable) -> dict[str, str]:
    described = table.namespace.describe_table({"id": table.parts, "check_declared": True})
    return dict(described.context)


def test_a_direct_commit_is_not_listed_as_a_version(table: ManagedTable) -> None:
    table.append_directly(20)
    assert table.rows() == [1]
    assert table.open().latest_version == 1
    with pytest.raises(ValueError, match="no version 2"):
        table.open(2)
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND):
        table.namespace.describe_table({"id": table.parts, "version": 2})
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND):
        table.namespace.table_exists({"id": table.parts, "version": 2})
    listed = table.namespace.list_table_versions({"id": table.parts}).versions
    assert [one.version for one in listed] == [1]


def test_a_commit_beside_a_direct_commit_is_refused(
    table: ManagedTable, caplog: pytest.LogCaptureFixture
) -> None:
    request = table.stage(2)
    table.append_directly(20)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "by path", "adopt"):
        table.commit(request)
    assert "by path" in caplog.text  # Lance's core drops the message of an error
    with pytest.raises(OSError, match="unknown"):
        table.append(3)
    assert (table.version, table.rows(), table.rows_by_path()) == (1, [1], [1, 20])
    assert table.recorded == []


def test_a_bypass_is_reported_to_writers_that_propose_the_next_version(
    lake: Lake, table: ManagedTable, caplog: pytest.LogCaptureFixture
) -> None:
    opened = table.open()
    in_lancedb = lancedb.connect_namespace(lake.impl, dict(lake.properties)).open_table(
        table.id[1], namespace_path=[table.id[0]]
    )
    assert table.append_directly(20) == 2
    writers: dict[str, Callable[[], object]] = {
        "write_dataset": lambda: table.append(3),
        "insert": lambda: opened.insert(opened.to_table()),
        "LanceDB's add": lambda: in_lancedb.add([{"row": 3}]),
    }
    for writer, write in writers.items():
        caplog.clear()
        with pytest.raises((OSError, RuntimeError), match="result for version 3 is unknown"):
            write()
        [said] = [one for one in caplog.records if one.levelno == logging.ERROR]
        for text in ("t was bypassed", "version 2", "metastore is at 1", "direct writer", "adopt"):
            assert text in said.getMessage(), writer
    assert (table.version, table.rows(), table.recorded) == (1, [1], [])


def test_a_bypass_is_reported_to_the_providers_own_writers(table: ManagedTable) -> None:
    table.append_directly(20)
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "was bypassed", "adopt"):
        delete_rows(table.namespace, "$".join(table.id), "row = 1")
    assert (table.version, table.rows()) == (1, [1])


def test_a_skipped_version_without_a_bypass_is_a_conflict(
    table: ManagedTable,
) -> None:
    request = table.stage(2)
    with refused_with(ErrorCode.CONCURRENT_MODIFICATION, "cannot commit version"):
        table.commit({**request, "version": 3})
    assert table.commit(request).version == 2


def test_direct_commits_are_adopted(table: ManagedTable) -> None:
    table.append_directly(20)
    table.append_directly(30)
    found = table.namespace.adopt_table(table.parts)
    assert (found.verdict, found.metastore_version, found.storage_version) == ("storage_ahead", 1, 3)
    assert table.namespace.compare_table(table.parts).verdict == "consistent"
    assert table.rows() == [1, 20, 30]
    assert table.append(4) == 4


def test_direct_commits_are_forgotten_once_their_manifests_are_removed(table: ManagedTable) -> None:
    table.append_directly(20)
    table.remove(table.final(2))
    assert table.append(2) == 2
    assert table.rows() == table.rows_by_path() == [1, 2]


def test_a_table_with_only_direct_commits_is_not_shown_as_empty(lake: Lake, database: str) -> None:
    table = lake.declare(database)
    table.append_directly(20)
    with pytest.raises(ValueError, match="adopt"):
        table.open()
    with pytest.raises(OSError, match="adopt"):
        table.append(2)
    assert context(table)["managed.verdict"] == "storage_ahead"
    table.namespace.adopt_table(table.parts)
    assert table.append(2) == 2
    assert table.rows() == [2, 20]


def test_a_committed_version_is_read_although_a_direct_writer_took_its_manifest_name(
    diverged: ManagedTable,
) -> None:
    for _ in range(2):
        assert diverged.rows() == [1, 2]
        assert diverged.rows_by_path() == [
            1,
            20,
        ]  # Lance would overwrite it with a staged manifest
    assert rows_of_version(diverged, 2) == [1, 2]
    assert diverged.namespace.describe_table({"id": diverged.parts, "version": 2}).version == 2


def test_a_commit_on_a_diverged_version_is_refused(table: ManagedTable) -> None:
    opened = table.open()
    request = table.stage(2)
    with POINTS["after-the-commit"].ended_by(simulate_death), pytest.raises(SimulatedDeath):
        table.commit(request)
    table.append_directly(20)
    # It opened version 1, and finds the direct commits after it: its manifest contains 1 and 20, but not 2.
    with pytest.raises(OSError, match="unknown"):
        opened.insert(opened.to_table())
    with pytest.raises(OSError, match="unknown"):
        table.append(3)
    assert (table.version, table.rows(), table.rows_by_path()) == (2, [1, 2], [1, 20])


def test_a_diverged_table_is_described_as_such(diverged: ManagedTable) -> None:
    diverged.append_directly(30)
    found = context(diverged)
    assert (found["managed.verdict"], found["managed.storage-version"]) == ("diverged", "3")
    assert "abandon" in found["managed.explanation"]
    plain = diverged.namespace.describe_table({"id": diverged.parts})
    assert (plain.version, plain.context) == (2, None)


def test_a_diverged_table_recovers_once_the_direct_commits_are_removed(diverged: ManagedTable) -> None:
    diverged.remove(diverged.final(2))
    assert diverged.rows() == diverged.rows_by_path() == [1, 2]
    assert diverged.namespace.compare_table(diverged.parts).verdict == "consistent"
    assert diverged.append(3) == 3


def test_a_committed_version_is_discarded_only_on_request(diverged: ManagedTable) -> None:
    with refused_with(ErrorCode.INVALID_TABLE_STATE, "abandon"):
        diverged.namespace.adopt_table(diverged.parts)
    with refused_with(ErrorCode.INVALID_TABLE_STATE):
        diverged.namespace.convert_table(diverged.parts, managed_by="storage")
    with refused_with(ErrorCode.INVALID_TABLE_STATE):
        diverged.append_directly(30)
        diverged.namespace.advance_table_version(diverged.parts, expected=2, new=3)
    assert diverged.rows() == [1, 2]
    assert diverged.namespace.adopt_table(diverged.parts, abandon=True).verdict == "diverged"
    assert diverged.rows() == [1, 20, 30]
    assert diverged.append(3) == 4


def test_a_direct_commit_between_read_and_publication_changes_no_result(table: ManagedTable) -> None:
    request = table.stage(2)
    before_the_name = Point(Publication, "finish", after=False, committed=True)
    with before_the_name.interrupted_by(lambda: table.append_directly(20)):
        answer = table.commit(request)
    assert answer.version == 2
    assert answer.manifest_path.endswith(table.recorded[0])
    assert (table.rows(), table.rows_by_path()) == ([1, 2], [1, 20])


def test_a_lost_manifest_is_reported_and_the_version_reset(table: ManagedTable) -> None:
    table.append(2)
    table.remove(table.final(2))
    with pytest.raises(ValueError, match="compare and repair"):
        table.open()
    assert context(table)["managed.verdict"] == "metastore_ahead"
    found = table.namespace.adopt_table(table.parts)
    assert (found.verdict, found.metastore_version, found.storage_version) == ("metastore_ahead", 2, 1)
    assert table.rows() == [1]
    assert table.append(3) == 2
    assert table.rows() == table.rows_by_path() == [1, 3]


def test_a_consistent_table_is_reported_as_such(table: ManagedTable) -> None:
    assert context(table)["managed.verdict"] == "consistent"


def rows_of_version(table: ManagedTable, version: int) -> list[int]:
    return sorted(table.open(version).to_table()["row"].to_pylist())
