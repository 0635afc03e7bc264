"""Drops, declarations, registrations and adoptions beside running writes, and their requests."""

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus

import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidTableStateError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.config import Properties, StorageConfig
from airflow_provider_lancens.namespace.error_types import StaleTableError
from airflow_provider_lancens.namespace.operations import table_operations
from airflow_provider_lancens.namespace.operations.cascade import PlannedTable
from airflow_provider_lancens.namespace.operations.table_operations import TableOperations
from airflow_provider_lancens.namespace.property_keys import STORAGE_PREFIX
from airflow_provider_lancens.namespace.storage import object_store, write_leases
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import latest_version
from airflow_provider_lancens.namespace.storage.write_leases import close_gate, gates_of
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.servers.s3_double import S3Double
from tests.servers.s3_link import Fault
from tests.servers.s3_requests import PUT
from tests.unit.spark.commit.memory_lake import (
    NAME,
    PARTS,
    Lake,
    MemoryNamespace,
    presume_dead,
    wait_for_nobody,
)

TABLE = TableId.parse(NAME)
DENIED = Fault(refusal=(HTTPStatus.FORBIDDEN, "AccessDenied"))


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


@pytest.fixture
def without_options(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> TableOperations:
    """The operations of a namespace whose credentials and endpoint are those of the environment."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "checks it",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": lake.s3.endpoint["aws_endpoint"],
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    object_store._remote_store.cache_clear()  # another double was in the environment before
    return operations(lake, {})


def operations(lake: Lake, properties: dict[str, str]) -> TableOperations:
    given = {"root": "s3://lake", **properties}
    config = StorageConfig.parse(Properties(given, list(given)))
    namespace = MemoryNamespace(lake.metastore, config, given)  # type: ignore[arg-type]
    return namespace._tables


def test_a_cascade_asks_also_where_the_credentials_are_those_of_the_environment(
    lake: Lake, without_options: TableOperations
) -> None:
    planned = PlannedTable.of(lake.metastore.tables[TABLE])
    with lake.s3.counted() as requests:
        without_options.check_not_written([planned])
    assert requests.total() == 1
    running(lake)
    with pytest.raises(ConcurrentModificationError, match="can't be dropped while others write"):
        without_options.check_not_written([planned])


def test_a_declaration_asks_also_where_the_credentials_are_those_of_the_environment(
    lake: Lake, without_options: TableOperations
) -> None:
    place = "s3://lake/given.lance"
    Manifests(place, lake.s3.storage).put("_lancens/writes/0", b"")
    with pytest.raises(ConcurrentModificationError, match="can't be declared at s3://lake/given"):
        without_options.declare(TableId.parse("db$u"), place, {})
    with lake.s3.counted() as requests:
        without_options.declare(TableId.parse("db$u"), "s3://lake/free.lance", {})
    assert requests.total() == 1


def test_a_cascade_that_may_only_read_does_not_go_on_beside_a_running_write(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(lake)
    lake.s3.fault = lambda request: DENIED if request.kind == PUT else Fault()
    planned = PlannedTable.of(lake.metastore.tables[TABLE])
    with pytest.raises(ConcurrentModificationError, match="can't be dropped while others write"):
        lake.namespace._tables.check_not_written([planned])
    monkeypatch.setattr(write_leases, "SILENCE", timedelta(seconds=-60))
    lake.namespace._tables.check_not_written([planned])


def test_a_table_that_may_not_be_asked_hides_no_other_of_its_store(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_operations, "_THREADS", 1)  # in this order
    running(lake)
    planned = PlannedTable.of(lake.metastore.tables[TABLE])
    place = str(planned.location)
    storage = {f"{STORAGE_PREFIX}{name}": value for name, value in lake.s3.storage.items()}
    tables = operations(lake, {"root": place, "allowed_locations": place, **storage})
    elsewhere = replace(planned, id=TableId.parse("db$u"), location="s3://lake/not-allowed.lance")
    with pytest.raises(ConcurrentModificationError, match="can't be dropped while others write"):
        tables.check_not_written([elsewhere, planned])


@pytest.mark.parametrize("silent", ["aws_endpoint", "aws_metadata_endpoint"])
def test_a_cascade_does_not_wait_long_for_a_store_that_never_answers(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, silent: str
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setattr(object_store, "_SHORT_TIMEOUTS", {"timeout": timedelta(seconds=0.3)})
    monkeypatch.setattr(object_store, "_FEW_RETRIES", {**object_store._FEW_RETRIES, "max_retries": 1})
    planned = PlannedTable.of(lake.metastore.tables[TABLE])
    many = [replace(planned, location=f"s3://lake/{number}.lance") for number in range(200)]
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"} if silent == "aws_endpoint" else {}
        options = {silent: address, "allow_http": "true", "aws_region": "us-east-1", **keys}
        storage = {f"{STORAGE_PREFIX}{name}": value for name, value in options.items()}
        began = time.monotonic()
        operations(lake, storage).check_not_written(many)
        assert time.monotonic() - began < 20
    assert "and the others in its store: whether others write there is unknown" in caplog.text


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
            target.update_catalog_columns(schema)
        lake.declare("storage")
        with pytest.raises(StaleTableError, match="isn't part of the table of this name"):
            target.update_catalog_columns(schema)
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
    assert costs["drop"] <= {"storage": (19, 4), "impl": (20, 4)}[lake.managed_by]
