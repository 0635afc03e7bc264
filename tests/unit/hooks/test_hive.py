"""A Hive connection's host and port as the metastore's addresses."""

import pytest
from airflow.sdk import Connection

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.hive import LanceHive2Hook, metastore_uris


@pytest.mark.parametrize(
    ("host", "port", "uris"),
    [
        ("metastore", None, "thrift://metastore:9083"),
        ("metastore", 9183, "thrift://metastore:9183"),
        ("thrift://metastore:9000", 9183, "thrift://metastore:9000"),
        ("one,two:9000 , thrift://three", 9183, "thrift://one:9183,thrift://two:9000,thrift://three:9183"),
        ("one,", None, "thrift://one:9083"),
        ("[::1]:9000", None, "thrift://[::1]:9000"),
    ],
)
def test_hosts_become_addresses(host: str, port: int | None, uris: str) -> None:
    assert metastore_uris(Connection(conn_id="lake", conn_type="lance_hive2", host=host, port=port)) == uris


@pytest.mark.parametrize("host", [None, "", " , "])
def test_an_empty_host_is_refused(host: str | None) -> None:
    with pytest.raises(
        AirflowFailException, match=r"connection 'lake', field Metastore hosts: is empty; expected host,"
    ):
        metastore_uris(Connection(conn_id="lake", conn_type="lance_hive2", host=host))


@pytest.mark.parametrize("host", ["http://metastore", "metastore:port", "metastore:99999", "metastore/db"])
def test_an_invalid_host_is_refused_by_name(host: str) -> None:
    with pytest.raises(AirflowFailException, match=f"field Metastore hosts: .*{host}"):
        metastore_uris(Connection(conn_id="lake", conn_type="lance_hive2", host=host))


def test_a_password_in_the_host_is_refused_and_not_shown() -> None:
    with pytest.raises(AirflowFailException, match="a user or a password") as refusal:
        metastore_uris(
            Connection(conn_id="lake", conn_type="lance_hive2", host="thrift://ann:hush@metastore")
        )
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize(
    "uri",
    [
        "lance-hive2://metastore:9000/?client.pool-size=5",
        "lance-hive2://thrift://metastore:9000/?client.pool-size=5",
        "lance-hive2://metastore:9000/?__extra__=%7B%22client.pool-size%22%3A+5%7D",
    ],
)
def test_connections_written_as_uris_are_read(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", uri)
    assert LanceHive2Hook("lake").namespace_properties() == {
        "uri": "thrift://metastore:9000",
        "client.pool-size": "5",
        "require_root": "true",
    }


def test_several_hosts_survive_a_round_trip_through_airflows_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    # The UI's Test button passes the form as a URI.
    connection = Connection(conn_id="lake", conn_type="lance_hive2", host="thrift://one:9000,thrift://two")
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", connection.get_uri())
    assert LanceHive2Hook("lake").endpoint_properties() == {"uri": "thrift://one:9000,thrift://two:9083"}
