"""Hooks are found by their connection's type, and open nothing when they are created."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from lance_namespace import CreateNamespaceRequest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.hive import LanceHive2Hook
from airflow_provider_lancens.hooks.lance_hook import LanceHook

Connect = Callable[..., str]


def test_making_a_hook_reads_no_connection() -> None:
    assert LanceHive2Hook("there_is_no_such_connection").lance_conn_id == "there_is_no_such_connection"
    assert LanceHive2Hook().lance_conn_id == "lance_default"


def test_making_a_namespace_opens_nothing(connect: Connect) -> None:
    hook = LanceHive2Hook(connect(host="unreachable.invalid"))
    assert hook.get_conn() is hook.get_conn()


def test_the_hook_is_found_by_the_connections_type(connect: Connect) -> None:
    hook = LanceHook.for_connection(connect(host="metastore"))
    assert type(hook) is LanceHive2Hook
    assert hook.namespace_properties() == {"uri": "thrift://metastore:9083", "require_root": "true"}


def test_without_a_root_nothing_is_created_below_the_workers_current_folder(connect: Connect) -> None:
    namespace = LanceHive2Hook(connect(host="unreachable.invalid")).get_conn()

    for one in (namespace, pickle.loads(pickle.dumps(namespace))):
        with pytest.raises(InvalidInputError, match=r"namespace 'sales' has no location, .* field Root"):
            one.create_namespace(CreateNamespaceRequest(id=["sales"]))


def test_a_hook_is_made_for_a_connection_of_any_type(connect: Connect) -> None:
    hook = LanceHook(connect(host="metastore"))

    assert type(hook) is LanceHive2Hook
    assert hook.lance_conn_id == "lake"


def test_a_table_of_a_hook_requests_nothing_and_raises_airflows_errors(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    hook = LanceHook(connect(host="unreachable.invalid", extra={"root": "/lake"}))

    assert hook.table("sales.orders").name == "sales$orders"
    assert hook.table({"table": "sales$orders", "version": 3}).version == 3
    with pytest.raises(AirflowFailException, match=r"sales\$a\.b.*two readings"):
        hook.table("sales$a.b")
    with pytest.raises(AirflowFailException, match=r"through connection 'lake'.*read-only"):
        hook.table({"table": "sales$orders", "version": 3}).delete("true")
    with pytest.raises(AirflowFailException, match="this needs Spark, and no session is active"):
        hook.table("sales.orders").read()


async def test_the_hook_is_found_from_an_event_loop_too(connect: Connect) -> None:
    hook = await LanceHook.afor_connection(connect(host="metastore"))
    assert type(hook) is LanceHive2Hook
    assert hook.lance_conn_id == "lake"


def test_another_connection_type_is_refused_with_the_allowed_ones(connect: Connect) -> None:
    with pytest.raises(
        AirflowFailException, match=r"'lake', field Connection Type: is 'http'; expected lance_hive2"
    ):
        LanceHook.for_connection(connect(conn_type="http", host="metastore"))


def test_a_property_refused_by_the_namespace_is_reported_with_the_connection(connect: Connect) -> None:
    hook = LanceHive2Hook(connect(host="metastore", extra={"client.pool-size": 0}))
    with pytest.raises(AirflowFailException, match=r"connection 'lake': .*client\.pool-size"):
        hook.get_conn()


@pytest.mark.parametrize(
    ("conn_type", "fields", "message"),
    [
        ("lance_hive2", {"host": "h", "extra": {"client.pool-size": 0}}, "field Pool size (extra"),
        ("lance_hive2", {"host": "a b:1"}, "Check field Metastore hosts"),
        ("lance_hive2", {"host": "h", "password": "p"}, "field Password has no effect"),
        ("lance_glue", {"extra": {"endpoint": "nowhere"}}, "field Endpoint (extra 'endpoint')"),
        ("lance_glue", {"login": "a key", "password": "secret"}, "field Access key ID: it contains spaces"),
    ],
)
def test_messages_name_the_fields_of_the_form(
    connect: Connect, conn_type: str, fields: dict[str, Any], message: str
) -> None:
    reached, said = LanceHook.for_connection(connect(conn_type=conn_type, **fields)).test_connection()

    assert not reached
    assert message in said
    assert "property '" not in said


def test_the_connection_test_reports_an_invalid_field_without_raising(connect: Connect) -> None:
    reached, message = LanceHive2Hook(connect(host="")).test_connection()
    assert not reached
    assert "field Metastore hosts: is empty" in message


def test_the_user_and_the_password_reach_the_namespace(connect: Connect) -> None:
    fields = {"login": "ann", "password": "hush-hush", "extra": {"client.auth": "plain", "client.tls": True}}
    hook = LanceHive2Hook(connect(host="metastore", **fields))
    properties = hook.namespace_properties()
    assert (properties["client.user"], properties["client.password"]) == ("ann", "hush-hush")
    assert "hush-hush" not in f"{hook.description} {hook!r} {hook.get_conn()!r}"


def test_a_password_without_sasl_authentication_is_refused(connect: Connect) -> None:
    hook = LanceHive2Hook(connect(host="metastore", login="ann", password="hush-hush"))
    with pytest.raises(AirflowFailException, match=r"connection 'lake': .*client\.auth=plain") as refusal:
        hook.get_conn()
    assert "hush-hush" not in str(refusal.value)


def test_the_description_and_repr_show_no_secret(connect: Connect) -> None:
    extra = {"storage.secret_access_key": "hush-hush", "root": "/lake"}
    hook = LanceHive2Hook(connect(host="metastore", extra=extra))
    assert hook.description == "Lance (Hive Metastore 2.x) at uri=thrift://metastore:9083"
    assert "hush-hush" not in f"{hook!r} {hook.get_conn()!r}"
