"""Release sets: versions of several tables are seen together or not at all, and are kept from clean-ups."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, DropTableRequest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    TableNotFoundError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from airflow_provider_lancens.spark.release_sets import ReleaseTags, find_release_set, move_release_set
from airflow_provider_lancens.spark.schema import add_columns, drop_columns
from airflow_provider_lancens.spark.table.resolved_table import resolved_table

pytestmark = pytest.mark.thorough

HIVE = "airflow_provider_lancens.namespace.Hive2Namespace"
PUBLISHER = """
import sys
from lance_namespace.errors import ConcurrentModificationError
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.release_sets import move_release_set

uri, root, release_set, number, *tables = sys.argv[1:]
spec = NamespaceSpec("airflow_provider_lancens.namespace.Hive2Namespace", {"uri": uri, "root": root})
while True:
    for version in range(1, int(number) + 1):
        try:
            members = dict.fromkeys(tables, version)
            move_release_set(spec, release_set, members, allow_older=True, keep_releases=100)
        except ConcurrentModificationError:
            pass
"""


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@dataclass
class Shop:
    """Tables, and a release set of them."""

    spec: NamespaceSpec
    database: str

    @property
    def daily(self) -> str:
        return f"{self.database}$daily"

    @property
    def tables(self) -> list[str]:
        return [f"{self.database}${name}" for name in ("orders", "customers")]

    def commit(self) -> None:
        """Commit the next version of each table."""
        for table in self.tables:
            with resolved_table(self.spec, table) as target:
                lance.write_dataset(pa.table({"id": [1]}), target.dataset.location, mode="append")

    def release(self, version: int, **arguments: Any) -> int:
        return move_release_set(
            self.spec, self.daily, dict.fromkeys(self.tables, version), **arguments
        ).version

    def found(self, version: int | None = None) -> tuple[int, dict[str, int]]:
        number, members = find_release_set(self.spec, self.daily, version)
        return number, {table: member.version for table, member in members.items()}

    def tags(self, table: str) -> list[int]:
        with resolved_table(self.spec, table) as target:
            dataset = target.open_latest()
            return [] if dataset is None else sorted({tag["version"] for tag in dataset.tags.list().values()})


@pytest.fixture(params=["impl", pytest.param("storage", marks=pytest.mark.long)])
def shop(request: pytest.FixtureRequest, metastore: MetastoreServer, database: str, tmp_path: Path) -> Shop:
    """Two tables of three versions; who decides the version of the release set differs."""
    spec = NamespaceSpec(HIVE, {"uri": metastore.uri, "root": str(tmp_path)})
    made = Shop(spec, database)
    with closing(Hive2Namespace(**spec.properties)) as namespace:
        namespace.create_namespace(CreateNamespaceRequest(id=[database]))
        for name in ("orders", "customers"):
            namespace.declare_table(DeclareTableRequest(id=[database, name]))
        properties = {"managed_by": request.param}
        namespace.declare_table(DeclareTableRequest(id=[database, "daily"], properties=properties))
    for _ in range(3):
        made.commit()
    return made


def test_a_release_is_found_whole_by_its_version(shop: Shop) -> None:
    assert (shop.release(1), shop.release(3)) == (1, 2)

    assert shop.found() == (2, dict.fromkeys(shop.tables, 3))
    assert shop.found(1) == (1, dict.fromkeys(shop.tables, 1))
    with pytest.raises(TableVersionNotFoundError):
        shop.found(3)


def test_released_versions_are_kept_from_clean_ups_while_they_are_among_the_last(shop: Shop) -> None:
    shop.release(1)
    shop.release(2)
    assert [shop.tags(table) for table in shop.tables] == [[1, 2], [1, 2]]

    shop.release(3)
    assert [shop.tags(table) for table in shop.tables] == [[2, 3], [2, 3]]
    with resolved_table(shop.spec, shop.tables[0]) as target:
        dataset = target.open(3)
        dataset.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
        assert [one["version"] for one in dataset.versions()] == [2, 3]


def test_a_table_that_left_the_set_loses_its_tags_with_the_last_release_that_had_it(shop: Shop) -> None:
    orders, customers = shop.tables
    shop.release(1)
    for version in (1, 2, 3):
        assert shop.tags(customers) == ([1] if version < 3 else [])
        move_release_set(shop.spec, shop.daily, {orders: version})
    assert shop.tags(customers) == []
    assert shop.tags(orders) == [2, 3]


def test_releases_are_counted_whatever_else_is_committed_to_the_set(shop: Shop) -> None:
    shop.release(1)
    for _ in range(2):
        add_columns(shop.spec, shop.daily, {"note": "string"})
        drop_columns(shop.spec, shop.daily, ["note"])
    shop.release(2)

    assert [shop.tags(table) for table in shop.tables] == [[1, 2], [1, 2]]


def test_a_restored_release_is_kept_from_clean_ups(shop: Shop) -> None:
    for version in (1, 2, 3):
        shop.release(version)
    restore_version(shop.spec, shop.daily, 1)
    assert shop.release(3) == 5

    assert [shop.tags(table) for table in shop.tables] == [[1, 3], [1, 3]]


def test_a_refused_release_leaves_no_tag(shop: Shop) -> None:
    orders, customers = shop.tables
    with pytest.raises(TableVersionNotFoundError):
        move_release_set(shop.spec, shop.daily, {orders: 1, customers: 9})
    assert shop.tags(orders) == []


def test_a_table_that_cannot_be_read_does_not_fail_a_release(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    orders, customers = shop.tables
    shop.release(1)
    with resolved_table(shop.spec, customers) as target:
        manifests = list(Path(target.dataset.location, "_versions").iterdir())
    contents = [manifest.read_bytes() for manifest in manifests]
    for manifest in manifests:
        manifest.write_bytes(b"unreadable")
    for version in (1, 2):
        move_release_set(shop.spec, shop.daily, {orders: version})
    assert f"tags of table {customers} weren't removed" in caplog.text
    assert shop.tags(orders) == [1, 2]
    for manifest, content in zip(manifests, contents, strict=True):
        manifest.write_bytes(content)
    move_release_set(shop.spec, shop.daily, {orders: 3})
    assert shop.tags(customers) == []


def test_an_interrupted_release_and_a_dropped_table_leave_no_tag(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, customers = shop.tables
    with monkeypatch.context() as patch:
        patch.setattr(ReleaseTags, "tag_release", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            shop.release(1)
    move_release_set(shop.spec, shop.daily, {orders: 1})
    assert shop.tags(customers) == [1]
    move_release_set(shop.spec, shop.daily, {orders: 2})
    assert shop.tags(customers) == []
    with closing(Hive2Namespace(**shop.spec.properties)) as namespace:
        namespace.drop_table(DropTableRequest(id=customers.split("$")))
    move_release_set(shop.spec, shop.daily, {orders: 3})
    assert shop.tags(orders) == [2, 3]


@pytest.mark.parametrize("execution_id", [None, "a run of a task"])
def test_a_retry_finds_its_release_and_other_versions_under_its_key_are_refused(
    shop: Shop, execution_id: str | None
) -> None:
    first = shop.release(1, key="monday", execution_id=execution_id)
    shop.release(2, key="tuesday")

    assert shop.release(1, key="monday", execution_id=execution_id) == first
    assert shop.found() == (2, dict.fromkeys(shop.tables, 2))
    with pytest.raises(
        InvalidInputError, match=r"other versions of the tables were released under .*'monday'"
    ):
        shop.release(3, key="monday", execution_id=execution_id)


def test_a_run_that_is_late_does_not_undo_a_newer_release(shop: Shop) -> None:
    shop.release(3)
    with pytest.raises(InvalidInputError, match=r"version 2 of table .* is older than 3.*allow_older=True"):
        shop.release(2)
    assert shop.release(2, allow_older=True) == 2


def test_a_release_onto_another_version_than_expected_is_refused(shop: Shop) -> None:
    shop.release(1, expected_version=0)
    with pytest.raises(ConcurrentModificationError, match="is at version 1, but expected_version=0"):
        shop.release(2, expected_version=0)
    assert shop.release(2, expected_version=1) == 2


def test_what_cannot_be_released_is_refused_and_nothing_is_written(shop: Shop) -> None:
    with pytest.raises(TableVersionNotFoundError, match=r"tables: .*has no version 9"):
        shop.release(9)
    with pytest.raises(TableNotFoundError):
        move_release_set(shop.spec, shop.daily, {f"{shop.database}$missing": 1})
    with pytest.raises(InvalidTableStateError, match="isn't a release set"):
        move_release_set(shop.spec, shop.tables[0], {shop.tables[1]: 1})
    with pytest.raises(TableVersionNotFoundError):
        shop.found()


def test_releases_at_the_same_time_are_never_mixed(shop: Shop) -> None:
    ended = threading.Event()
    seen: list[dict[str, int]] = []

    def read() -> None:
        while not ended.is_set():
            with suppress(TableVersionNotFoundError):
                seen.append(shop.found()[1])

    def release(_: int) -> None:
        for version in range(1, 4):
            with suppress(ConcurrentModificationError):
                shop.release(version, allow_older=True, keep_releases=100)

    with ThreadPoolExecutor(5) as pool:
        reader = pool.submit(read)
        try:
            list(pool.map(release, range(4)))
        finally:
            ended.set()
        reader.result()

    assert seen
    assert all(len(set(one.values())) == 1 and sorted(one) == sorted(shop.tables) for one in seen)


@pytest.mark.long
def test_16_publishers_that_are_killed_never_leave_a_mixed_set(shop: Shop) -> None:
    properties = shop.spec.properties
    command = [sys.executable, "-c", PUBLISHER, properties["uri"], properties["root"], shop.daily, "3"]
    running = [subprocess.Popen([*command, *shop.tables]) for _ in range(16)]
    releases: set[int] = set()
    try:
        for process in running:
            # Each has a while to release and to be in the way of the others, and is then killed.
            enough = len(releases) + 20
            while len(releases) < enough:
                with suppress(TableVersionNotFoundError):
                    version, members = shop.found()
                    releases.add(version)
                    assert len(set(members.values())) == 1
                    assert sorted(members) == sorted(shop.tables)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    finally:
        for process in running:
            process.kill()
            process.wait()
    for version in range(1, shop.found()[0] + 1):
        assert len(set(shop.found(version)[1].values())) == 1
    assert shop.release(3, allow_older=True) == shop.found()[0]
