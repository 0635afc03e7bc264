"""A managed table on a full or read-only disk: a coded error, and no row lost or duplicated."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from tests.conformance.codes import refused_with
from tests.integration.managed.commit_points import POINTS, SimulatedDeath, simulate_death
from tests.integration.managed.managed_table import ManagedTable
from tests.servers.small_disk import SmallDisk, small_disk
from tests.support.lakes import hive_lake


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=4) as mounted:
        yield mounted


@pytest.fixture
def table(metastore: MetastoreServer, disk: SmallDisk, database: str) -> Iterator[ManagedTable]:
    """A managed table at version 1, with row 1, on a small disk."""
    declared = hive_lake(metastore, disk.path / "lake").declare(database)
    declared.append(1)
    yield declared
    declared.namespace.drop_namespace({"id": [database], "behavior": "cascade", "mode": "skip"})
    declared.namespace.close()


def test_a_failed_write_beside_the_data_says_what_to_do(disk: SmallDisk) -> None:
    files = TableFiles(str(disk.path), {})
    disk.fill()
    for write in (files.put, files.create):
        with refused_with(ErrorCode.SERVICE_UNAVAILABLE, str(disk.path), "is full", "free up space"):
            write("_lancens/record", b"x" * 10_000)
    disk.make_room()
    disk.mount_read_only()
    for write in (files.put, files.create):
        with refused_with(ErrorCode.PERMISSION_DENIED, "is read-only", "mount it writable"):
            write("_lancens/record", b"x")
    disk.mount_writable()
    files.put("_lancens/record", b"x")
    assert files.read("_lancens/record") == b"x"


@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_commit_that_cannot_be_recorded_is_refused_and_succeeds_later(
    table: ManagedTable, disk: SmallDisk, fault: str
) -> None:
    request = table.stage(2)
    if fault == "full":
        disk.fill()
        with refused_with(ErrorCode.SERVICE_UNAVAILABLE, "is full", "run it again"):
            table.commit(request)
        assert (table.version, table.rows()) == (1, [1])
        disk.make_room()
    else:
        disk.mount_read_only()
        with refused_with(ErrorCode.PERMISSION_DENIED, "is read-only"):
            table.commit(request)
        assert (table.version, table.rows()) == (1, [1])
        disk.mount_writable()
    assert table.commit(request).version == 2
    assert table.rows() == table.rows_by_path() == [1, 2]


@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_commit_that_cannot_be_published_stands_and_is_published_later(
    table: ManagedTable, disk: SmallDisk, fault: str
) -> None:
    request = table.stage(2)
    with POINTS["after-the-commit"].ended_by(simulate_death), pytest.raises(SimulatedDeath):
        table.commit(request)
    disk.fill() if fault == "full" else disk.mount_read_only()
    assert table.rows() == [1, 2]
    with pytest.raises(OSError, match=r"is full|No space|Read-only|unknown"):
        table.append(3)
    disk.make_room() if fault == "full" else disk.mount_writable()
    assert table.append(3) == 3
    assert table.rows() == table.rows_by_path() == [1, 2, 3]
