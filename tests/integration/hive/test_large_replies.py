"""Replies of many megabytes are read, in bounded memory, and by the deadline of their call."""

import time
import tracemalloc

import pytest
from lance_namespace.errors import ServiceUnavailableError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.hive import connection
from tests.integration.hive.hostile import names_reply
from tests.servers.proxy import Proxy

LIST = "get_table_names_by_filter"
COUNT, LENGTH = 100_000, 128
NAMES = [f"t_{number:06}".ljust(LENGTH, "x") for number in range(COUNT)]
MEGABYTE = 2**20


@pytest.fixture(params=["2.3.10"])
def server(metastore: MetastoreServer) -> MetastoreServer:
    """One release does: the replies are ours."""
    return metastore


def test_a_page_of_a_hundred_thousand_long_names_costs_little_more_than_the_names(
    proxied: Hive2Namespace, proxy: Proxy
) -> None:
    proxy.change_reply(LIST, names_reply(NAMES))
    tracemalloc.start()
    page = proxied.list_tables({"id": ["default"], "limit": 10})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert page.tables == NAMES[:10]
    assert peak <= 2 * COUNT * (LENGTH + 60)
    assert (
        proxied.list_tables({"id": ["default"], "limit": 10, "page_token": page.page_token}).tables[0]
        == NAMES[10]
    )
    assert proxy.calls.count(LIST) == 1


def test_a_whole_list_is_as_long_as_the_reply(proxied: Hive2Namespace, proxy: Proxy) -> None:
    proxy.change_reply(LIST, names_reply(NAMES))
    assert proxied.list_tables({"id": ["default"]}).tables == NAMES


def test_a_filtered_list_that_comes_slowly_is_read_without_the_servers_filter(
    namespace: Hive2Namespace, db: str, proxy: Proxy
) -> None:
    namespace.declare_table({"id": [db, "orders"]})
    proxy.send_reply_slowly(LIST)
    with Hive2Namespace(uri=proxy.uri, root="/nowhere", **{"client.read-timeout": "0.6"}) as slow:
        slow.namespace_exists({"id": [db]})
        started = time.monotonic()
        assert slow.list_tables({"id": [db], "limit": 10}).tables == ["orders"]
        assert time.monotonic() - started < 10


def test_a_reply_that_comes_slowly_ends_by_the_read_timeout(proxy: Proxy) -> None:
    proxy.send_reply_slowly("get_database")
    with Hive2Namespace(uri=proxy.uri, root="/nowhere", **{"client.read-timeout": "0.6"}) as namespace:
        started = time.monotonic()
        with pytest.raises(ServiceUnavailableError, match="timed out after"):
            namespace.describe_namespace({"id": ["default"]})
        assert time.monotonic() - started < 10


def test_a_reply_beyond_the_limit_is_left_and_the_next_call_works(
    proxied: Hive2Namespace, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    proxied.namespace_exists({"id": ["default"]})
    monkeypatch.setattr(connection, "MAX_REPLY", 2**20)
    proxy.change_reply(LIST, names_reply(NAMES))
    # Tables are then read without the server's filter, by further calls.
    assert not set(proxied.list_tables({"id": ["default"], "limit": 10}).tables) & set(NAMES)
    assert "it is longer than" in caplog.text
