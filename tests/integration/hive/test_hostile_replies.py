"""Malformed replies raise errors of the specification, for only the affected table and call."""

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_namespace.errors import (
    ErrorCode,
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
)

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.table_status import TableStatus
from tests.integration.hive.hostile import OUT_OF_STEP, UNREADABLE, Change
from tests.servers.proxy import Proxy

READ, BATCH = "get_table_req", "get_table_objects_by_name_req"
BAD = "t_bad"


def only_for_the_bad_table(change: Change) -> Change:
    return lambda request, reply: change(request, reply) if BAD.encode() in request else reply


@pytest.fixture(params=["2.3.10"])
def server(metastore: MetastoreServer) -> MetastoreServer:
    """One release is enough, since the replies are injected."""
    return metastore


@pytest.fixture
def tables(namespace: Hive2Namespace, db: str) -> list[str]:
    """Declared tables, one of which is unreadable."""
    made = ["t_1", BAD, "t_2"]
    for name in made:
        namespace.declare_table({"id": [db, name], "properties": {"managed_by": "impl"}})
    return made


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_reply_that_cannot_be_read_is_code_18_and_its_connection_is_not_used_again(
    proxied: Hive2Namespace, proxy: Proxy, db: str, tables: list[str], name: str
) -> None:
    proxy.change_reply(READ, UNREADABLE[name], times=1)
    with pytest.raises(InternalError, match=f"cannot read table {db}.t_1") as refusal:
        proxied.describe_table({"id": [db, "t_1"]})
    assert refusal.value.code == ErrorCode.INTERNAL
    assert proxied.describe_table({"id": [db, "t_1"]}).location
    assert proxy.calls.count(READ) == 2


@pytest.mark.parametrize("name", OUT_OF_STEP)
def test_a_reply_to_another_call_is_discarded_and_the_read_is_retried(
    proxied: Hive2Namespace, proxy: Proxy, db: str, tables: list[str], name: str
) -> None:
    proxy.change_reply(READ, OUT_OF_STEP[name], times=1)
    assert proxied.describe_table({"id": [db, "t_1"]}).location.endswith("t_1.lance")
    assert proxy.connections == 2


@pytest.mark.parametrize("name", OUT_OF_STEP)
def test_a_server_that_always_replies_to_another_call_is_code_17(
    proxied: Hive2Namespace, proxy: Proxy, db: str, tables: list[str], name: str
) -> None:
    proxy.change_reply(READ, OUT_OF_STEP[name])
    with pytest.raises(ServiceUnavailableError, match=r"not a Thrift message|expected a reply to call"):
        proxied.describe_table({"id": [db, "t_1"]})


@pytest.mark.parametrize("name", ["nothing", "a type that there is not", "another call's number"])
def test_a_change_with_an_unreadable_reply_is_verified_by_reading_back(
    proxied: Hive2Namespace, proxy: Proxy, db: str, name: str
) -> None:
    change = {**UNREADABLE, **OUT_OF_STEP}[name]
    created = "create_table_with_environment_context"
    proxy.change_reply(created, change, times=1)
    proxied.declare_table({"id": [db, "t"]})
    assert proxy.calls.count(created) == 1


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_table_fails_only_its_own_poll(
    proxied: Hive2Namespace, proxy: Proxy, db: str, tables: list[str], name: str
) -> None:
    proxy.change_reply(BATCH, only_for_the_bad_table(UNREADABLE[name]))
    found = proxied.poll_tables([TableId.of([db, table]) for table in tables])
    assert isinstance(found.pop(TableId.of([db, BAD])), InternalError)
    assert all(isinstance(one, TableStatus) for one in found.values())
    assert len(found) == 2


def test_a_list_leaves_out_an_unreadable_table_and_logs_it(
    proxy: Proxy, db: str, tables: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    proxy.change_reply(BATCH, only_for_the_bad_table(UNREADABLE["a parameter of 17 MB"]))
    slow = Hive2Namespace(uri=proxy.uri, root="/nowhere", **{"client.table-filter": "false"})
    assert slow.list_tables({"id": [db]}).tables == ["t_1", "t_2"]
    assert f"Table {db}${BAD} is not listed, since it cannot be read" in caplog.text


def test_a_property_that_cannot_be_read_back_is_refused(namespace: Hive2Namespace, db: str) -> None:
    request = {"id": [db, "t"], "properties": {"x": "x" * 16_000_001}}
    with pytest.raises(InvalidInputError, match="'x': its value may have at most 16000000 bytes"):
        namespace.declare_table(request)


@pytest.fixture(scope="module")
def wire(metastore: MetastoreServer) -> Iterator[tuple[Proxy, Hive2Namespace]]:
    with Proxy(metastore.uri) as proxy, Hive2Namespace(uri=proxy.uri, root="/nowhere") as namespace:
        yield proxy, namespace


_EDITS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(edits=_EDITS, length=st.integers(0, 400))
def test_a_damaged_reply_raises_only_errors_of_the_specification(
    wire: tuple[Proxy, Hive2Namespace], edits: list[tuple[int, int]], length: int
) -> None:
    proxy, namespace = wire

    def damage(request: bytes, reply: bytes) -> bytes:
        damaged = bytearray(reply)
        for position, value in edits:
            damaged[position % len(damaged)] = value
        return bytes(damaged[:length] if length % 3 == 0 else damaged)

    proxy.forget_faults()
    proxy.change_reply("get_database", damage, then_close=True)
    with contextlib.suppress(LanceNamespaceError):
        namespace.describe_namespace({"id": ["default"]})
