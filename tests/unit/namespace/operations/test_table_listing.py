"""What a page of a list costs, in catalogs of different sizes."""

from collections.abc import Callable
from typing import Any

import pytest
from lance_namespace.errors import ServiceUnavailableError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from airflow_provider_lancens.namespace.operations.recent_listings import RecentListings
from airflow_provider_lancens.namespace.operations.table_listing import TableListing
from airflow_provider_lancens.namespace.paging import Page, PageRequest
from tests.unit.namespace.operations.large_catalog import BATCH, LargeCatalog

DB = NamespaceId.of(["db"])
SMALL, LARGE = 300, 3000
LIMIT = 100


def listing(
    catalog: Any, *, only_declared: Callable[[CatalogTable], bool] = lambda table: False
) -> TableListing:
    return TableListing(catalog, only_declared, RecentListings())


def pages(list_page: Callable[[PageRequest], Page]) -> list[Page]:
    """All pages, one after the other."""
    found = [list_page(PageRequest(limit=LIMIT))]
    while found[-1].token:
        found.append(list_page(PageRequest.parse(found[-1].token, LIMIT)))
    return found


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("after", [None, "last"])
def test_a_page_lists_the_names_once_and_reads_no_table(size: int, after: str | None) -> None:
    catalog = LargeCatalog({"db": size})
    start = after and f"t_{size - LIMIT - 1:06}"
    page = listing(catalog).page(DB, PageRequest(start, LIMIT), declared=True)
    assert len(page.names) == LIMIT
    assert catalog.calls == {"list": 1}


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("after", [None, "last"])
def test_a_page_of_tables_with_data_reads_only_its_own_tables(size: int, after: str | None) -> None:
    catalog = LargeCatalog({"db": size})
    asked: list[str] = []
    tables = listing(catalog, only_declared=lambda table: bool(asked.append(table.id.name)))
    page = tables.page(DB, PageRequest(after and f"t_{size - LIMIT - 1:06}", LIMIT), declared=False)
    assert page.names == asked
    assert len(asked) == LIMIT
    assert catalog.calls == {"list": 1, "read": LIMIT // BATCH}


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("declared", [True, False])
def test_all_pages_together_are_the_whole_list(size: int, declared: bool) -> None:
    catalog = LargeCatalog({"db": size})
    tables = listing(catalog)
    found = pages(lambda request: tables.page(DB, request, declared=declared))
    assert [name for page in found for name in page.names] == sorted(catalog.tables["db"])
    assert catalog.calls["read"] == (0 if declared else size // BATCH)


def test_the_pages_of_a_large_database_list_its_names_once() -> None:
    catalog = LargeCatalog({"db": LARGE})
    tables = listing(catalog)
    assert len(pages(lambda request: tables.page(DB, request, declared=True))) == LARGE // LIMIT
    assert catalog.calls == {"list": 1}
    tables.page(DB, PageRequest("t_000500", LIMIT), declared=True)
    assert catalog.calls == {"list": 2}


def test_tables_without_data_are_left_out_and_the_page_is_filled_by_the_next_ones() -> None:
    catalog = LargeCatalog({"db": SMALL})
    tables = listing(catalog, only_declared=lambda table: int(table.id.name[2:]) % 3 > 0)
    found = pages(lambda request: tables.page(DB, request, declared=False))
    assert [name for page in found for name in page.names] == sorted(catalog.tables["db"])[::3]
    assert catalog.calls["read"] == SMALL // BATCH + 1  # for a last page that turns out to be empty


def test_the_whole_list_of_tables_with_data_reads_each_table_once() -> None:
    catalog = LargeCatalog({"db": LARGE})
    page = listing(catalog).page(DB, PageRequest(), declared=False)
    assert page == Page(sorted(catalog.tables["db"]), None)
    assert catalog.calls == {"list": 1, "read": LARGE // BATCH}


@pytest.mark.parametrize("databases", [30, 300])
@pytest.mark.parametrize("declared", [True, False])
def test_a_page_over_all_databases_reads_only_those_of_the_page(databases: int, declared: bool) -> None:
    catalog = LargeCatalog({f"db_{number:04}": 50 for number in range(databases)})
    tables = listing(catalog)
    tables.page_of_all(PageRequest(limit=LIMIT), declared=declared)
    assert catalog.calls["list_namespaces"] == 1
    assert catalog.calls["list"] == 3  # the third tells that there is another page
    catalog.calls.clear()
    after = f"db_{databases - 3:04}$t_000049"
    page = tables.page_of_all(PageRequest(after, LIMIT), declared=declared)
    assert page.names[0] == f"db_{databases - 2:04}$t_000000"
    assert len(page.names) == LIMIT
    assert page.token is None
    assert catalog.calls["list"] == 3


@pytest.mark.parametrize("declared", [True, False])
def test_the_pages_over_all_databases_are_the_whole_list_in_its_order(declared: bool) -> None:
    # A space and a hyphen sort before and after the delimiter.
    catalog = LargeCatalog({"a": 120, "a b": 3, "a-b": 230, "empty": 0, "z": 1})
    tables = listing(catalog)
    found = pages(lambda request: tables.page_of_all(request, declared=declared))
    names = [name for page in found for name in page.names]
    assert names == sorted(f"{db}${name}" for db, there in catalog.tables.items() for name in there)
    assert names == tables.page_of_all(PageRequest(), declared=declared).names


def test_a_database_that_is_dropped_while_all_are_listed_is_left_out() -> None:
    catalog = LargeCatalog({"a": 1, "b": 1})
    listed = catalog.list_namespaces
    catalog.list_namespaces = lambda parent: [*listed(parent), "dropped"]  # type: ignore[method-assign]
    assert listing(catalog).page_of_all(PageRequest(), declared=True).names == ["a$t_000000", "b$t_000000"]


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_a_storage_that_does_not_answer_is_asked_once_for_all_databases(limit: int | None) -> None:
    catalog = LargeCatalog({f"db_{number}": 10 for number in range(5)})
    asked: list[str] = []

    def unavailable(table: CatalogTable) -> bool:
        asked.append(table.id.name)
        raise ServiceUnavailableError("the storage did not respond")

    tables = listing(catalog, only_declared=unavailable)
    assert len(tables.page_of_all(PageRequest(None, limit), declared=False).names) == 50
    assert len(asked) == 1
