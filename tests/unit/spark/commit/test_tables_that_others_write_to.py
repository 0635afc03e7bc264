"""Drops, declarations, registrations and adoptions beside running writes, and their requests."""

import threading
from collections.abc import Iterator

import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidTableStateError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.operations.cascade import PlannedTable
from airflow_provider_lancens.namespace.operations.table_operations import TableOperations
from airflow_provider_lancens.namespace.stale_table import StaleTableError
from airflow_provider_lancens.namespace.storage import write_leases
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import latest_version
from airflow_provider_lancens.namespace.storage.write_leases import close_gate, gates_of
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.table.described_columns import describe_columns
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.servers.s3_double import S3Double
from tests.unit.spark.commit.memory_lake import NAME, PARTS, Lake, presume_dead, wait_for_nobody

TABLE = TableId.parse(NAME)


@pytest.fixture(params=["storage", "impl"])
def lake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """A table with one row."""
    wait_for_nobody(monkeypatch)
    with S3Double("lake") as s3:
        made = Lake(s3, request.param)
        made.declare(request.param)
        made.write(1)
        yield made


def location(lake: Lake) -> str:
    return str(lake.namespace.describe_table({"id": PARTS}).location)


def running(lake: Lake) -> WriteLease:
    with resolved_table(lake.namespace, NAME) as target:
        return acquire_lease(target.dataset)


def test_a_drop_beside_a_running_write_is_refused_and_names_it(lake: Lake) -> None:
    lease = running(lake)
    with pytest.raises(
        ConcurrentModificationError, match=r"by process \d+ on .* began at .* lease .* ends at"
    ):
        lake.namespace.drop_table({"id": PARTS})
    assert lake.rows() == [1]
    lease.end()
    lake.namespace.drop_table({"id": PARTS})


def test_a_drop_waits_for_a_write_that_is_about_to_end(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = running(lake)
    monkeypatch.setattr(write_leases, "_WAIT", 20.0)
    end = threading.Timer(0.5, lease.end)
    end.start()
    lake.namespace.drop_table({"id": PARTS})
    end.join()


def test_a_table_is_dropped_though_a_write_died(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = running(lake)
    presume_dead(monkeypatch)
    lake.namespace.drop_table({"id": PARTS})
    with pytest.raises(ConcurrentModificationError):
        lease.check()
    assert not lake.s3.bucket.keys


def test_a_cascade_beside_a_running_write_is_refused(lake: Lake) -> None:
    tables: TableOperations = lake.namespace._tables
    planned = PlannedTable.of(lake.metastore.tables[TABLE])
    tables.check_not_written([planned])
    running(lake)
    with pytest.raises(ConcurrentModificationError, match="can't be dropped while others write"):
        tables.check_not_written([planned])


def test_a_location_where_a_former_table_is_written_to_is_refused(lake: Lake) -> None:
    place = "s3://lake/given.lance"
    WriteLease(Manifests(place, lake.s3.storage), "_lancens/writes/0").files.put("_lancens/writes/0", b"")
    with pytest.raises(ConcurrentModificationError, match="can't be declared at s3://lake/given"):
        lake.namespace.declare_table({"id": ["db", "u"], "location": place})


def test_a_registration_elsewhere_beside_a_running_write_is_refused(lake: Lake) -> None:
    running(lake)
    with pytest.raises(ConcurrentModificationError, match="can't be registered at another location"):
        lake.namespace.register_table({"id": PARTS, "location": "s3://lake/other.lance", "mode": "overwrite"})
    assert lake.rows() == [1]


def test_columns_are_never_described_in_a_table_that_was_declared_again(lake: Lake) -> None:
    with resolved_table(lake.namespace, NAME) as target:
        schema = target.open(1).schema
        lake.namespace.drop_table({"id": PARTS})
        with pytest.raises(StaleTableError, match="isn't part of the table of this name"):
            describe_columns(target, schema)
        lake.declare("storage")
        with pytest.raises(StaleTableError, match="isn't part of the table of this name"):
            describe_columns(target, schema)
    assert lake.metastore.tables[TABLE].columns == ()


def test_a_version_whose_files_are_missing_is_not_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Double("lake") as s3:
        lake = Lake(s3, "impl")
        lake.declare("impl")
        lake.write(1)
        before = set(s3.bucket.keys)
        lake.write(2)
        manifests = Manifests(location(lake), s3.storage)
        lost = next(key for key in set(s3.bucket.keys) - before if "/data/" in key)
        manifests.remove(lost.partition("t.lance/")[2])
        found = lake.metastore.tables[TABLE]
        parameters = {key: one for key, one in found.parameters.items() if key != "lancens.commit"}
        lake.metastore.tables[TABLE] = type(found)(found.id, found.location, {**parameters, "version": "1"})
        with pytest.raises(InvalidTableStateError, match="version 1 is the newest whole one"):
            lake.namespace.adopt_table(PARTS)
        assert lake.metastore.tables[TABLE].parameters["version"] == "1"


def test_the_next_write_ends_a_conversion_that_died(monkeypatch: pytest.MonkeyPatch) -> None:
    with S3Double("lake") as s3:
        lake = Lake(s3)
        lake.declare("storage")
        files = Manifests(location(lake), s3.storage)
        close_gate(files, "a-conversion-that-was-undone")
        lake.write(1)
        assert gates_of(files) == []
        assert lake.rows() == [1]


def test_a_write_a_declaration_and_a_drop_make_few_requests_to_storage_and_metastore(lake: Lake) -> None:
    assert latest_version(location(lake), lake.s3.storage) == 1
    costs = {}
    for name, act in {
        "write": lambda: lake.write(2),
        "drop": lambda: lake.namespace.drop_table({"id": PARTS}),
        "declare": lambda: lake.declare(lake.managed_by),
    }.items():
        before = len(lake.metastore.calls)
        with lake.s3.counted() as requests:
            act()
        costs[name] = (requests.total(), len(lake.metastore.calls) - before)
    assert costs["declare"] == (0, 1)
    assert costs["write"] <= {"storage": (20, 1), "impl": (35, 8)}[lake.managed_by]
    assert costs["drop"] <= {"storage": (18, 4), "impl": (19, 4)}[lake.managed_by]
