"""Connections are few, reused, replaced when stale, and never shared by two threads or processes."""

import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from lance_namespace.errors import ServiceUnavailableError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.hive.pool import Pool
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, hive_properties
from tests.servers.proxy import Proxy

ROOT = {"id": []}
DEFAULT = {"id": ["default"]}
THREADS = 8
CALLS_EACH = 30


@pytest.fixture
def proxy(metastore: MetastoreServer) -> Iterator[Proxy]:
    with Proxy(metastore.uri) as network:
        yield network


def connect(proxy: Proxy, **properties: str) -> Hive2Namespace:
    return Hive2Namespace(uri=proxy.uri, root="/nowhere", **properties)


def test_nothing_is_opened_before_the_first_call(proxy: Proxy) -> None:
    connect(proxy).namespace_id()
    assert proxy.connections == 0


def test_sequential_calls_share_one_connection(proxy: Proxy) -> None:
    with connect(proxy) as namespace:
        for _ in range(5):
            namespace.list_namespaces(ROOT)
    assert proxy.connections == 1


def test_a_failed_call_returns_its_connection(proxy: Proxy) -> None:
    with connect(proxy, **{"client.pool-size": "1"}) as namespace:
        for _ in range(5):
            with pytest.raises(Exception, match="db_missing"):
                namespace.describe_namespace({"id": ["db_missing"]})
    assert proxy.connections == 1


@pytest.mark.thorough
def test_many_threads_share_a_small_pool_without_an_error(proxy: Proxy, database: str) -> None:
    with connect(proxy, **{"client.pool-size": "3"}) as namespace:
        namespace.create_namespace({"id": [database]})

        def work(thread: int) -> None:
            for call in range(CALLS_EACH):
                table = {"id": [database, f"t{thread}_{call % 3}"]}
                namespace.declare_table(table)
                assert namespace.describe_table(table).location.endswith(f"t{thread}_{call % 3}.lance")
                namespace.deregister_table(table)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, range(THREADS)))
        assert namespace.list_tables({"id": [database]}).tables == []
        namespace.drop_namespace({"id": [database]})
    assert proxy.connections <= 3


def test_an_exhausted_pool_is_reported(proxy: Proxy) -> None:
    properties = {"uri": proxy.uri, "client.pool-size": "1", "client.read-timeout": "0.5"}
    pool = Pool(ClientSettings.parse(hive_properties(properties)), lambda connection: None)
    used, done = threading.Event(), threading.Event()

    def take_long(_: object) -> None:
        used.set()
        done.wait()

    busy = threading.Thread(target=pool.write, args=(take_long,))
    busy.start()
    assert used.wait(30)
    with pytest.raises(ServiceUnavailableError, match=r"all 1 connections .* raise client\.pool-size"):
        pool.write(lambda connection: None)
    done.set()
    busy.join()
    pool.close()


class InterruptedWork(BaseException):
    """Raised by a signal handler, as Airflow's timeout interrupts a task."""


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise InterruptedWork

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupted_call_leaves_no_reply_to_the_next_call(proxy: Proxy, database: str) -> None:
    with connect(proxy, **{"client.pool-size": "1"}) as namespace:
        namespace.create_namespace({"id": [database]})
        held = proxy.hold_reply("get_all_databases")
        with pytest.raises(InterruptedWork), interrupted_after(0.5):
            namespace.list_namespaces(ROOT)
        held.released.set()
        assert namespace.describe_namespace({"id": [database]}).properties
        namespace.drop_namespace({"id": [database]})


def test_a_forked_process_opens_its_own_connections(proxy: Proxy) -> None:
    with connect(proxy, **{"client.pool-size": "1"}) as namespace:
        expected = namespace.describe_namespace(DEFAULT).properties
        context = multiprocessing.get_context("fork")
        answers: Any = context.SimpleQueue()
        child = context.Process(target=lambda: answers.put(namespace.describe_namespace(DEFAULT).properties))
        child.start()
        assert namespace.describe_namespace(DEFAULT).properties == expected
        child.join(60)
        assert child.exitcode == 0
        assert answers.get() == expected
    assert proxy.connections == 2


def test_a_process_forked_while_all_connections_are_busy_is_not_stuck(proxy: Proxy) -> None:
    held = proxy.hold_reply("get_all_databases")
    with connect(proxy, **{"client.pool-size": "1"}) as namespace:
        busy = threading.Thread(target=lambda: namespace.list_namespaces(ROOT))
        busy.start()
        assert held.happened.wait(30)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=lambda: namespace.namespace_exists({"id": ["default"]}))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        held.released.set()
        busy.join()


def test_a_pickled_namespace_works_in_another_process_after_use(
    metastore: MetastoreServer, tmp_path: Path
) -> None:
    with Hive2Namespace(uri=metastore.uri, root=str(tmp_path)) as namespace:
        expected = namespace.describe_namespace(DEFAULT).properties
        (tmp_path / "namespace.pickle").write_bytes(pickle.dumps(namespace))
    program = (
        "import pickle, pathlib, sys; n = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes());"
        "print(n.describe_namespace({'id': ['default']}).properties, n.namespace_id())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "namespace.pickle")],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert answer.stdout.strip() == f"{expected} {namespace.namespace_id()}"
