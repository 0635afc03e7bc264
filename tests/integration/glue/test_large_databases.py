"""Calls that lists, plans and polls cost in databases of many pages, for Glue bills and throttles each."""

from collections import Counter
from collections.abc import Iterator

import pytest

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace import GlueNamespace
from tests.servers.glue_double import LARGEST, GlueDouble

SIZES = [300, 3000]


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def large(glue: GlueDouble, namespace: GlueNamespace, database: str, size: int) -> Iterator[str]:
    """A database of so many tables, in another order than that of their names."""
    namespace.create_namespace({"id": [database]})
    glue.add_tables(database, (f"t_{number:04}" for number in reversed(range(size))), "file:/nowhere/t.lance")
    yield database
    glue.client("glue").delete_database(Name=database)


def calls_since(glue: GlueDouble, start: int) -> Counter[str]:
    return Counter(request.operation for request in glue.requests[start:])


def test_all_pages_of_a_large_database_cost_as_many_calls_as_one(
    glue: GlueDouble, namespace: GlueNamespace, large: str, size: int
) -> None:
    start, names = len(glue.requests), []
    page = namespace.list_tables({"id": [large], "limit": 100})
    first = calls_since(glue, start)
    names += page.tables
    while page.page_token:
        page = namespace.list_tables({"id": [large], "limit": 100, "page_token": page.page_token})
        names += page.tables
    assert names == [f"t_{number:04}" for number in range(size)]
    assert first == {"GetTables": size // LARGEST}
    # A short list is current on each page.
    assert calls_since(glue, start) == {"GetTables": size // LARGEST * (3 if size == SIZES[0] else 1)}


def test_a_plan_reads_each_page_once_and_the_check_before_the_drop_once_more(
    glue: GlueDouble, namespace: GlueNamespace, large: str, size: int
) -> None:
    start = len(glue.requests)
    plan = namespace.plan_drop_namespace({"id": [large]})
    assert len(plan.tables) == size
    assert calls_since(glue, start) == {"GetDatabase": 1, "GetTables": size // LARGEST}


@pytest.mark.parametrize("size", SIZES)
def test_a_cascade_reads_and_drops_a_hundred_tables_by_two_calls(
    glue: GlueDouble, namespace: GlueNamespace, database: str, size: int
) -> None:
    namespace.create_namespace({"id": [database]})
    glue.add_tables(database, (f"t_{number:04}" for number in range(size)), "file:/nowhere/t.lance")
    start, batches = len(glue.requests), size // LARGEST
    namespace.drop_namespace({"id": [database], "behavior": "cascade"})
    calls = calls_since(glue, start)
    assert calls["BatchDeleteTable"] == batches
    # The plan, the check before the first drop, the check of each hundred, and that none is left.
    assert calls["GetTables"] == 3 * batches + 1
    assert sum(calls.values()) <= 4 * batches + 5


def test_a_poll_of_many_tables_costs_at_most_the_pages_of_their_database(
    glue: GlueDouble, namespace: GlueNamespace, large: str, size: int
) -> None:
    tables = [TableId.of([large, f"t_{number:04}"]) for number in range(0, size, 3)]
    for _ in range(2):
        start = len(glue.requests)
        found = namespace.poll_tables(tables)
        assert all(getattr(status, "location", None) for status in found.values())
        assert calls_since(glue, start) == {"GetTables": size // LARGEST}


def test_a_list_of_tables_with_data_reads_each_page_once(
    glue: GlueDouble, namespace: GlueNamespace, large: str, size: int
) -> None:
    start = len(glue.requests)
    assert namespace.list_tables({"id": [large], "include_declared": False}).tables == []
    assert calls_since(glue, start) == {"GetTables": size // LARGEST}
