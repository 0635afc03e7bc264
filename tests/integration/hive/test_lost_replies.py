"""Lost replies: a call is made once, and its result verified by reading back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from airflow_provider_lancens.namespace.metastore_protocol import Expectation, ParameterChange
from tests.integration.hive.raw import names_in, raw_table
from tests.servers.proxy import Proxy

CREATE, ALTER, DROP = (
    "create_table_with_environment_context",
    "alter_table_with_environment_context",
    "drop_table",
)


@pytest.fixture(params=["request", "reply"])
def lose(request: pytest.FixtureRequest, proxy: Proxy) -> Callable[[str], Any]:
    """Lose the request or the reply of the next call of a name."""
    return proxy.lose_request if request.param == "request" else proxy.lose_reply


def test_a_lost_reply_declares_the_table_once(
    proxied: Hive2Namespace, server: MetastoreServer, db: str, lose: Callable[[str], Any]
) -> None:
    fault = lose(CREATE)
    proxied.declare_table({"id": [db, "t"], "properties": {"team": "search"}})
    assert fault.happened.is_set()
    assert raw_table(server.uri, db, "t").parameters["team"] == "search"
    with pytest.raises(TableAlreadyExistsError):
        proxied.declare_table({"id": [db, "t"]})


def test_a_table_declared_by_another_client_meanwhile_is_refused(
    proxied: Hive2Namespace, namespace: Hive2Namespace, db: str, lose: Callable[[str], Any]
) -> None:
    namespace.declare_table({"id": [db, "t"], "properties": {"team": "theirs"}})
    lose(CREATE)
    with pytest.raises(TableAlreadyExistsError):
        proxied.declare_table({"id": [db, "t"], "properties": {"team": "ours"}})
    assert namespace.describe_table({"id": [db, "t"]}).properties["team"] == "theirs"


def test_lost_replies_create_and_drop_the_namespace_once(
    proxied: Hive2Namespace, db: str, lose: Callable[[str], Any]
) -> None:
    other = {"id": [f"{db}_2"], "properties": {"team": "search"}}
    lose("create_database")
    proxied.create_namespace(other)
    with pytest.raises(NamespaceAlreadyExistsError):
        proxied.create_namespace(other)
    lose("drop_database")
    proxied.drop_namespace(other)
    assert f"{db}_2" not in proxied.list_namespaces({"id": []}).namespaces


@pytest.mark.parametrize("operation", ["deregister_table", "drop_table"])
def test_a_table_is_dropped_once(
    proxied: Hive2Namespace,
    server: MetastoreServer,
    db: str,
    lose: Callable[[str], Any],
    operation: str,
) -> None:
    proxied.declare_table({"id": [db, "t"]})
    fault = lose(DROP)
    getattr(proxied, operation)({"id": [db, "t"]})
    assert fault.happened.is_set()
    assert names_in(server.uri, db) == []
    with pytest.raises(TableNotFoundError):
        getattr(proxied, operation)({"id": [db, "t"]})


@pytest.mark.parametrize("operation", ["deregister_table", "drop_table", "cascade"])
def test_a_table_that_is_declared_again_before_a_lost_drop_is_verified_stays(
    proxied: Hive2Namespace,
    namespace: Hive2Namespace,
    server: MetastoreServer,
    db: str,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
) -> None:
    proxied.declare_table({"id": [db, "t"]})
    find = HiveMetastore._find_table

    def declared_again(metastore: HiveMetastore, table: TableId) -> Any:
        if not declared:
            declared.append(namespace.declare_table({"id": [db, "t"]}).location)
        return find(metastore, table)

    declared: list[Any] = []
    monkeypatch.setattr(HiveMetastore, "_find_table", declared_again)
    proxy.lose_reply(DROP)

    if operation == "cascade":
        with pytest.raises(NamespaceNotEmptyError, match="another client added to it"):
            proxied.drop_namespace({"id": [db], "behavior": "cascade"})
    else:
        getattr(proxied, operation)({"id": [db, "t"]})

    assert names_in(server.uri, db) == ["t"]
    assert namespace.describe_table({"id": [db, "t"]}).location == declared[0]


def test_a_table_is_renamed_once(
    proxied: Hive2Namespace, server: MetastoreServer, db: str, lose: Callable[[str], Any]
) -> None:
    proxied.declare_table({"id": [db, "t"]})
    fault = lose(ALTER)
    proxied.rename_table({"id": [db, "t"], "new_table_name": "u"})
    assert fault.happened.is_set()
    assert names_in(server.uri, db) == ["u"]


def test_a_lost_reply_applies_a_compare_and_set_once(
    proxied: Hive2Namespace, server: MetastoreServer, db: str, lose: Callable[[str], Any], request: Any
) -> None:
    _skip_without_compare_and_set(request)
    _declare_at_version(proxied, db, "1")
    fault = lose(ALTER)
    _advance(proxied, db, "1", "2")
    assert fault.happened.is_set()
    assert raw_table(server.uri, db, "t").parameters["version"] == "2"
    with pytest.raises(ConcurrentModificationError):
        _advance(proxied, db, "1", "3")


def test_a_column_of_another_type_is_described_although_a_call_is_lost(
    proxied: Hive2Namespace, server: MetastoreServer, db: str, lose: Callable[[str], Any]
) -> None:
    proxied.declare_table({"id": [db, "t"]})
    proxied.update_catalog_columns([db, "t"], pa.schema({"x": pa.list_(pa.int64())}))
    fault = lose(ALTER)
    proxied.update_catalog_columns([db, "t"], pa.schema({"x": pa.int32()}))
    assert fault.happened.is_set()
    [column] = raw_table(server.uri, db, "t").sd.cols
    assert (column.name, column.type) == ("x", "int")


def test_a_compare_and_set_won_by_another_client_is_refused(
    proxied: Hive2Namespace, namespace: Hive2Namespace, server: MetastoreServer, db: str, request: Any
) -> None:
    _skip_without_compare_and_set(request)
    _declare_at_version(proxied, db, "1")

    def conflicting(_: object) -> ParameterChange:
        # Both have read version 1 before the other client's alter.
        _advance(namespace, db, "1", "2 of theirs")
        return ParameterChange(set={"version": "2 of ours"}, expect=Expectation("version", "1"))

    proxied._metastore.require_compare_and_set(TableId.of([db, "t"]).namespace)
    namespace._metastore.require_compare_and_set(TableId.of([db, "t"]).namespace)
    with pytest.raises(ConcurrentModificationError):
        proxied._metastore.update_table(TableId.of([db, "t"]), conflicting)
    assert raw_table(server.uri, db, "t").parameters["version"] == "2 of theirs"


def test_a_lost_read_is_retried(
    proxied: Hive2Namespace, proxy: Proxy, db: str, lose: Callable[[str], Any], tmp_path: Path
) -> None:
    proxied.declare_table({"id": [db, "t"]})
    lose("get_table_req")
    assert proxied.describe_table({"id": [db, "t"]}).location
    assert proxy.calls.count("get_table_req") == 2


def test_a_server_whose_every_reply_is_lost_is_unavailable(
    proxied: Hive2Namespace, proxy: Proxy, db: str
) -> None:
    proxied.namespace_exists({"id": [db]})
    proxy.lose_reply(CREATE, times=9)
    proxy.lose_reply("get_table_req", times=9)
    with pytest.raises(ServiceUnavailableError, match=proxy.uri):
        proxied.declare_table({"id": [db, "t"], "location": "/somewhere"})
    assert proxy.calls.count(CREATE) == 1


def _skip_without_compare_and_set(request: pytest.FixtureRequest) -> None:
    if "3.1.3" in request.node.name:
        pytest.skip("3.1.3 has no compare-and-set")


def _declare_at_version(namespace: Hive2Namespace, db: str, version: str) -> None:
    namespace.declare_table({"id": [db, "t"], "properties": {"version": version}})


def _advance(namespace: Hive2Namespace, db: str, expected: str, version: str) -> None:
    change = ParameterChange(set={"version": version}, expect=Expectation("version", expected))
    namespace._metastore.update_table(TableId.of([db, "t"]), lambda catalog_table: change)
