"""Listing and describing 2,000 tables, compared with bare Thrift and lance-namespace-impls."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.benchmarks.namespace.bare_thrift import LANCE_FILTER, describe
from tests.benchmarks.timing import interleaved, timed
from tests.servers.peer import Peer
from tests.servers.proxy import Proxy
from tests.support.benchmark_sizes import TABLES

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

TABLE = "t01001"


def test_listing_takes_a_few_calls_and_is_as_fast_as_bare_thrift(
    ours: Hive2Namespace, bare: Any, large_database: str, show: Callable[..., None]
) -> None:
    candidates = {
        "ours": timed(lambda: ours.list_tables({"id": [large_database]})),
        "bare": timed(lambda: bare.get_table_names_by_filter(large_database, LANCE_FILTER, -1)),
    }
    times = interleaved(30, candidates)
    show(f"list {TABLES} tables, half Lance", times)
    assert times.ratio("ours", "bare") <= 2


def test_listing_is_many_times_faster_than_lance_namespace_impls(
    ours: Hive2Namespace, peer: Peer, large_database: str, show: Callable[..., None]
) -> None:
    expected = sorted(peer.list_tables(id=[large_database])["tables"])
    assert ours.list_tables({"id": [large_database]}).tables == expected
    assert len(expected) == TABLES / 2
    candidates = {
        "peer": lambda: peer.ask("list_tables", id=[large_database]).seconds,
        "ours": timed(lambda: ours.list_tables({"id": [large_database]})),
    }
    times = interleaved(5, candidates, warm_up=1)
    show(f"list {TABLES} tables, half Lance", times)
    assert times.ratio("peer", "ours") >= 20


def test_describing_is_as_fast_as_bare_thrift_and_twice_as_fast_as_lance_namespace_impls(
    ours: Hive2Namespace, bare: Any, peer: Peer, large_database: str, show: Callable[..., None]
) -> None:
    candidates = {
        "ours": timed(lambda: ours.describe_table({"id": [large_database, TABLE]})),
        "bare": timed(lambda: describe(bare, large_database, TABLE)),
        "peer": lambda: peer.ask("describe_table", id=[large_database, TABLE]).seconds,
    }
    times = interleaved(300, candidates, warm_up=50)
    show("describe a table", times)
    assert times.ratio("ours", "bare") <= 1.3
    assert times.ratio("ours", "peer") <= 0.5


def test_reads_take_few_calls_and_no_new_connection(
    metastore: MetastoreServer, root: Any, large_database: str
) -> None:
    with Proxy(metastore.uri) as proxy, Hive2Namespace(uri=proxy.uri, root=str(root)) as namespace:
        namespace.namespace_exists({"id": [large_database]})
        for operation, request, calls in (
            ("list_tables", [large_database], 1),
            ("describe_table", [large_database, TABLE], 1),
            ("table_exists", [large_database, TABLE], 1),
            ("describe_namespace", [large_database], 1),
            ("list_namespaces", [], 1),
        ):
            before = len(proxy.calls)
            getattr(namespace, operation)({"id": request})
            assert len(proxy.calls) - before == calls, operation
        assert proxy.connections == 1
