"""Calls and memory that lists, plans and polls cost in databases of 300 and of 3,000 tables."""

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.identifiers import NamespaceId, TableId
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.operations.cascade import Cascade
from airflow_provider_lancens.namespace.paging import token_after
from tests.servers.many_tables import copy_database, copy_table
from tests.servers.proxy import Proxy
from tests.servers.releases import hms_2

pytestmark = pytest.mark.thorough

SIZES = {"small": 300, "large": 1500}
DATABASES = 300
LIMIT = 100
PATIENCE = {"client.read-timeout": "600"}
"""A batch is made larger after a reply within a twentieth of this: also on a busy machine."""
NAMES, READ = "get_table_names_by_filter", "get_table_objects_by_name_req"
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def crowded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A server of its own: its tables are copied while it is stopped."""
    folder: Path = tmp_path_factory.mktemp("crowded")
    server = MetastoreServer(hms_2(), folder)
    with server, Hive2Namespace(uri=server.uri, root=str(folder / "root")) as namespace:
        for database in (*SIZES, "one"):
            namespace.create_namespace({"id": [database]})
            rows, table = pa.table({"x": [1]}), [database, "t"]
            lance.write_dataset(rows, namespace_client=namespace, table_id=table, mode="create")
    for database, size in SIZES.items():
        copy_table(hms_2(), folder, database, "t", size)
    copy_database(hms_2(), folder, "one", "t", DATABASES)
    with server:
        yield server


@pytest.fixture(scope="module")
def network(crowded_server: MetastoreServer) -> Iterator[Proxy]:
    with Proxy(crowded_server.uri) as proxy:
        yield proxy


@pytest.fixture
def lake(network: Proxy) -> Iterator[Hive2Namespace]:
    """A namespace that is connected, but has listed nothing yet."""
    with Hive2Namespace(uri=network.uri, root="/nowhere", **PATIENCE) as namespace:
        namespace.namespace_exists({"id": ["one"]})
        yield namespace


@pytest.fixture
def calls_of(network: Proxy) -> Callable[[Callable[[], object]], Counter[str]]:
    """Run something, and count its calls."""

    def count(work: Callable[[], object]) -> Counter[str]:
        before = len(network.calls)
        work()
        return Counter(network.calls[before:])

    return count


Count = Callable[[Callable[[], object]], Counter[str]]


@pytest.mark.parametrize("database", SIZES)
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_page_costs_the_same_calls_in_every_database(
    lake: Hive2Namespace, calls_of: Count, database: str, declared: bool, place: str
) -> None:
    token = None if place == "first" else token_after(f"t_{SIZES[database] - LIMIT - 1:06}")
    request = {"id": [database], "limit": LIMIT, "page_token": token, "include_declared": declared}

    def list_page() -> None:
        assert len(lake.list_tables(request).tables) == LIMIT

    assert calls_of(list_page) == ({NAMES: 1} if declared else {NAMES: 1, READ: 1})


@pytest.mark.parametrize("declared", [True, False])
def test_the_pages_of_a_large_database_list_its_names_once(
    lake: Hive2Namespace, calls_of: Count, declared: bool
) -> None:
    names: list[str] = []

    def list_pages() -> None:
        request: dict[str, Any] = {"id": ["large"], "limit": 1000, "include_declared": declared}
        while True:
            page = lake.list_tables(request)
            names.extend(page.tables)
            if not page.page_token:
                return
            request["page_token"] = page.page_token

    calls = calls_of(list_pages)
    assert names == ["t", *(f"t_{number:06}" for number in range(SIZES["large"]))]
    # Names expire that were listed faster by far than the tables of a page are read.
    assert calls[NAMES] == 1 or (not declared and calls[NAMES] <= 4)
    assert calls[READ] <= (0 if declared else 10 + calls[NAMES])


@pytest.mark.parametrize("database", SIZES)
def test_a_plan_and_its_check_read_each_table_once_in_batches(
    lake: Hive2Namespace, calls_of: Count, database: str
) -> None:
    def plan_and_check() -> None:
        plan = lake.plan_drop_namespace({"id": [database]})
        assert len(plan.tables) == SIZES[database] + 1
        Cascade(lake._metastore)._check_unchanged(plan)

    tracemalloc.start()
    calls = calls_of(plan_and_check)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert calls["get_all_tables"] == 2
    assert calls[READ] <= 2 * (3 + SIZES[database] // 500)
    assert peak <= 5 * MEGABYTE + 1000 * SIZES[database]


@pytest.mark.parametrize("database", SIZES)
def test_a_poll_of_many_tables_of_a_database_reads_them_in_batches(
    lake: Hive2Namespace, calls_of: Count, database: str
) -> None:
    tables = [TableId.of([database, f"t_{number:06}"]) for number in range(300)]

    def poll() -> None:
        assert all(getattr(status, "location", None) for status in lake.poll_tables(tables).values())

    assert calls_of(poll)[READ] <= 3
    assert calls_of(poll) == {READ: 1}


def test_a_poll_over_many_databases_is_one_call_for_each(lake: Hive2Namespace, calls_of: Count) -> None:
    tables = [TableId.of([f"one_{number:06}", "t"]) for number in range(DATABASES)]
    assert calls_of(lambda: lake.poll_tables(tables)) == {READ: DATABASES}


def test_a_page_over_all_databases_reads_only_those_of_the_page(
    lake: Hive2Namespace, calls_of: Count
) -> None:
    first = calls_of(lambda: lake.list_all_tables({"limit": LIMIT}))
    assert first == {"get_all_databases": 1, NAMES: 1, "get_database": 1} | first  # `default` is empty
    assert sum(first.values()) <= 5
    token = token_after(f"one_{DATABASES - 11:06}$t")
    page = lake.list_all_tables({"limit": 10, "page_token": token})
    assert page.tables == [f"one_{number:06}$t" for number in range(DATABASES - 10, DATABASES)]


def test_all_databases_are_listed_by_one_call(lake: Hive2Namespace, calls_of: Count) -> None:
    assert calls_of(lambda: lake.list_namespaces({"limit": 10})) == {"get_all_databases": 1}
    assert len(lake._metastore.list_namespaces(NamespaceId(()))) == DATABASES + 4
