"""Reads of many tables of a Glue database with the fewest calls."""

from collections.abc import Iterator

import pytest

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.glue.api import PAGE
from airflow_provider_lancens.namespace.glue.batch_reader import GlueBatchReader
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable

DATABASE = NamespaceId.of(["sales"])


class Catalog:
    """A database of this many tables that counts calls."""

    def __init__(self, size: int) -> None:
        self.names = [f"t{number:05}" for number in range(size)]
        self.calls = 0
        self._many = GlueBatchReader()

    def read(self, *names: str) -> int:
        """Read these tables, and return the number of calls."""
        before = self.calls
        reads = self._many.read(DATABASE, set(names), self._one, self._pages)
        assert sorted(table.id.name for read in reads for table in read.tables) == sorted(
            set(names) & set(self.names)
        )
        return self.calls - before

    def _one(self, name: str) -> CatalogTable | None:
        self.calls += 1
        return CatalogTable(DATABASE.table(name)) if name in self.names else None

    def _pages(self) -> Iterator[list[CatalogTable]]:
        for start in range(0, max(1, len(self.names)), PAGE):
            self.calls += 1
            yield [CatalogTable(DATABASE.table(name)) for name in self.names[start : start + PAGE]]


def test_one_table_is_read_by_one_call() -> None:
    assert Catalog(1000).read("t00999") == 1


def test_many_tables_of_a_small_database_are_read_in_pages() -> None:
    catalog = Catalog(150)
    assert catalog.read(*catalog.names) == 2
    assert catalog.read(*catalog.names) == 2


def test_few_tables_of_a_large_database_are_read_one_by_one_from_the_second_time() -> None:
    catalog = Catalog(1000)
    last = catalog.names[-3:]
    assert catalog.read(*last) <= 6
    assert catalog.read(*last) == 3


@pytest.mark.parametrize("names", [("gone",), ("t00000", "gone"), ("gone", "lost", "t00001")])
def test_missing_tables_are_left_out(names: tuple[str, ...]) -> None:
    catalog = Catalog(10)
    catalog.read(*names)
    catalog.read(*names)


def test_no_tables_take_no_call() -> None:
    assert Catalog(10).read() == 0
