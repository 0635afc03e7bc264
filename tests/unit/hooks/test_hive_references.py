"""A Hive connection that refers to a `hive_metastore` connection of the apache-hive provider."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.hive import LanceHive2Hook, LanceHive3Hook
from airflow_provider_lancens.hooks.lance_hook import LanceHook

Connect = Callable[..., str]


@pytest.fixture
def referring(connect: Connect) -> Callable[..., LanceHook]:
    """A hook whose connection refers to a `hive_metastore` connection with these fields."""

    def make(conn_type: str = "lance_hive2", **fields: Any) -> LanceHook:
        connect("metastore_default", "hive_metastore", **fields)
        extra = {"hive_metastore_conn_id": "metastore_default", "root": "s3://bucket/lake"}
        return LanceHook.for_connection(connect(conn_type=conn_type, extra=extra))

    return make


@pytest.mark.parametrize(
    ("conn_type", "hook"), [("lance_hive2", LanceHive2Hook), ("lance_hive3", LanceHive3Hook)]
)
def test_servers_are_taken_from_the_referenced_connection(
    referring: Callable[..., LanceHook], conn_type: str, hook: type[LanceHook]
) -> None:
    made = referring(conn_type, host="one,two", port=9183)
    assert type(made) is hook
    assert made.namespace_properties() == {
        "uri": "thrift://one:9183,thrift://two:9183",
        "root": "s3://bucket/lake",
    }


async def test_the_referenced_connection_can_be_read_on_an_event_loop(
    referring: Callable[..., LanceHook], monkeypatch: pytest.MonkeyPatch
) -> None:
    referring(host="one")
    hook = await LanceHook.afor_connection("lake")
    monkeypatch.delenv("AIRFLOW_CONN_METASTORE_DEFAULT")
    assert hook.endpoint_properties() == {"uri": "thrift://one:9083"}


def test_kerberos_settings_are_taken_from_the_referenced_connection(
    referring: Callable[..., LanceHook],
) -> None:
    extra = {"auth_mechanism": "GSSAPI", "kerberos_service_name": "hms"}
    properties = referring(host="one", extra=extra).namespace_properties()
    assert properties["client.auth"] == "kerberos"
    assert properties["client.kerberos.service-name"] == "hms"


def test_servers_in_both_connections_are_refused(connect: Connect) -> None:
    extra = {"hive_metastore_conn_id": "metastore_default"}
    hook = LanceHive2Hook(connect(host="here", extra=extra))
    both = r"field Metastore hosts and field Hive Metastore connection \(extra 'hive_metastore_conn_id'\)"
    with pytest.raises(AirflowFailException, match=f"'lake': {both} both specify servers"):
        hook.namespace_properties()
