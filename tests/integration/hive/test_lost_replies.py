"""A call whose answer is lost is answered rightly, and done once: the server is asked what happened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    NamespaceAlreadyExistsError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.metastore import Change, Expectation
from tests.integration.hive.raw import names_in, raw_table
from tests.servers.proxy import Proxy

CREATE, ALTER, DROP = (
    "create_table_with_environment_context",
    "alter_table_with_environment_context",
    "drop_table",
)


@pytest.fixture(params=["request", "reply"])
def lose(request: pytest.FixtureRequest, proxy: Proxy) -> Callable[[str], Any]:
    """Lose the next call of a name on its way to the server, or its answer on the way back."""
    return proxy.lose_request if request.param == "request" else proxy.lose_reply


def test_a_table_is_declared_once(
    far: Hive2Namespace, server: MetastoreServer, db: str, lose: Callable[[str], Any]
) -> None:
    fault = lose(CREATE)
    far.declare_table({"id": [db, "t"], "properties": {"team": "search"}})
    assert fault.happened.is_set()
    assert raw_table(server.uri, db, "t").parameters["team"] == "search"
    with pytest.raises(TableAlreadyExistsError):
        far.declare_table({"id": [db, "t"]})


def test_a_table_that_another_one_declared_meanwhile_is_theirs(
    far: Hive2Namespace, namespace: Hive2Namespace, db: str, lose: Callable[[str], Any]
) -> None:
    namespace.declare_table({"id": [db, "t"], "properties": {"team": "theirs"}})
    lose(CREATE)
    with pytest.raises(TableAlreadyExistsError):
        far.declare_table({"id": [db, "t"], "properties": {"team": "ours"}})
    assert namespace.describe_table({"id": [db, "t"]}).properties["team"] == "theirs"


def test_a_namespace_is_created_once_and_dropped_once(
    far: Hive2Namespace, db: str, lose: Callable[[str], Any]
) -> None:
    other = {"id": [f"{db}_2"], "properties": {"team": "search"}}
    lose("create_database")
    far.create_namespace(other)
    with pytest.raises(NamespaceAlreadyExistsError):
        far.create_namespace(other)
    lose("drop_database")
    far.drop_namespace(other)
    assert f"{db}_2" not in far.list_namespaces({"id": []}).namespaces


@pytest.mark.parametrize("operation", ["deregister_table", "drop_table"])
def test_a_table_is_dropped_once(
    far: Hive2Namespace,
    server: MetastoreServer,
    db: str,
    lose: Callable[[str], Any],
    operation: str,
) -> None:
    far.declare_table({"id": [db, "t"]})
    fault = lose(DROP)
    getattr(far, operation)({"id": [db, "t"]})
    assert fault.happened.is_set()
    assert names_in(server.uri, db) == []
    with pytest.raises(TableNotFoundError):
        getattr(far, operation)({"id": [db, "t"]})


def test_a_table_is_renamed_once(
    far: Hive2Namespace, server: MetastoreServer, db: str, lose: Callable[[str], Any]
) -> None:
    far.declare_table({"id": [db, "t"]})
    fault = lose(ALTER)
    far.rename_table({"id": [db, "t"], "new_table_name": "u"})
    assert fault.happened.is_set()
    assert names_in(server.uri, db) == ["u"]


def test_a_compare_and_set_is_made_once(
    far: Hive2Namespace, server: MetastoreServer, db: str, lose: Callable[[str], Any], request: Any
) -> None:
    _skip_without_compare_and_set(request)
    _declare_at_version(far, db, "1")
    fault = lose(ALTER)
    _advance(far, db, "1", "2")
    assert fault.happened.is_set()
    assert raw_table(server.uri, db, "t").parameters["version"] == "2"
    with pytest.raises(ConcurrentModificationError):
        _advance(far, db, "1", "3")


def test_a_compare_and_set_that_another_one_won_meanwhile_is_refused(
    far: Hive2Namespace, namespace: Hive2Namespace, server: MetastoreServer, db: str, request: Any
) -> None:
    _skip_without_compare_and_set(request)
    _declare_at_version(far, db, "1")

    def overtaken(_: object) -> Change:
        # Both have read version 1 when the other one's alter is made.
        _advance(namespace, db, "1", "2 of theirs")
        return Change(set={"version": "2 of ours"}, expect=Expectation("version", "1"))

    far._metastore.require_compare_and_set(TableId.of([db, "t"]).namespace)
    namespace._metastore.require_compare_and_set(TableId.of([db, "t"]).namespace)
    with pytest.raises(ConcurrentModificationError):
        far._metastore.update_table(TableId.of([db, "t"]), overtaken)
    assert raw_table(server.uri, db, "t").parameters["version"] == "2 of theirs"


def test_a_read_is_made_again(
    far: Hive2Namespace, proxy: Proxy, db: str, lose: Callable[[str], Any], tmp_path: Path
) -> None:
    far.declare_table({"id": [db, "t"]})
    lose("get_table_req")
    assert far.describe_table({"id": [db, "t"]}).location
    assert proxy.calls.count("get_table_req") == 2


def test_a_server_that_loses_every_answer_is_unavailable(far: Hive2Namespace, proxy: Proxy, db: str) -> None:
    far.namespace_exists({"id": [db]})
    proxy.lose_reply(CREATE, times=9)
    proxy.lose_reply("get_table_req", times=9)
    with pytest.raises(ServiceUnavailableError, match=proxy.uri):
        far.declare_table({"id": [db, "t"], "location": "/somewhere"})
    assert proxy.calls.count(CREATE) == 1


def _skip_without_compare_and_set(request: pytest.FixtureRequest) -> None:
    if "3.1.3" in request.node.name:
        pytest.skip("3.1.3 has no compare-and-set")


def _declare_at_version(namespace: Hive2Namespace, db: str, version: str) -> None:
    namespace.declare_table({"id": [db, "t"], "properties": {"version": version}})


def _advance(namespace: Hive2Namespace, db: str, expected: str, version: str) -> None:
    change = Change(set={"version": version}, expect=Expectation("version", expected))
    namespace._metastore.update_table(TableId.of([db, "t"]), lambda entry: change)
