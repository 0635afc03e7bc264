"""Batched reads with unreadable tables."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance_namespace.errors import InternalError, PermissionDeniedError, ServiceUnavailableError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.batch_reads import read_each, read_one_by_one
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable

NAMES = [f"t{number}" for number in range(40)]


class Server:
    """A server that fails a batch with an unreadable table."""

    def __init__(self, broken: frozenset[str]) -> None:
        self.broken = broken
        self.calls = 0

    def read(self, names: Sequence[str]) -> Sequence[CatalogTable]:
        self.calls += 1
        if found := self.broken & set(names):
            raise InternalError(f"cannot read {min(found)}")
        return [CatalogTable(TableId(("db", name))) for name in names]


@given(st.lists(st.sampled_from(NAMES), max_size=4).map(frozenset), st.integers(5, 40))
def test_only_unreadable_tables_fail(broken: frozenset[str], count: int) -> None:
    names = NAMES[:count]
    result = read_each(names, Server(broken).read)
    assert set(result.failures) == broken & set(names)
    assert {table.id.name for table in result.tables} == set(names) - broken


def test_a_server_that_fails_for_every_table_is_called_few_times() -> None:
    server = Server(frozenset(NAMES))
    with pytest.raises(ServiceUnavailableError, match="none of 5 tables could be read"):
        read_each(NAMES, server.read)
    assert server.calls < 20


@pytest.mark.parametrize("calls", range(1, 8))
@pytest.mark.parametrize("broken", [[], ["t0"], ["t9"]])
def test_a_server_that_recovers_meanwhile_fails_no_table(calls: int, broken: list[str]) -> None:
    server = Server(frozenset(broken))

    def read(names: Sequence[str]) -> Sequence[CatalogTable]:
        if server.calls < calls:
            server.calls += 1
            raise InternalError("cannot read its reply")
        return server.read(names)

    result = read_each(NAMES[:10], read)
    assert sorted(result.failures) == broken
    assert {table.id.name for table in result.tables} == set(NAMES[:10]) - set(broken)


@pytest.mark.parametrize("calls", range(5))
@pytest.mark.parametrize("broken", [[], ["t0"], ["t9"]])
def test_a_server_that_recovers_meanwhile_fails_no_table_that_is_read_alone(
    calls: int, broken: list[str]
) -> None:
    server = Server(frozenset(broken))

    def read(name: str) -> CatalogTable | None:
        if server.calls < calls:
            server.calls += 1
            raise InternalError("cannot read its reply")
        return server.read([name])[0] if name != "t1" else None

    results = list(read_one_by_one(NAMES[:10], read))
    assert sorted(name for result in results for name in result.failures) == broken
    found = sorted(table.id.name for result in results for table in result.tables)
    assert found == sorted(set(NAMES[:10]) - {"t1", *broken})


def test_a_server_that_denies_each_table_is_not_failing() -> None:
    def read(names: Sequence[str]) -> Sequence[CatalogTable]:
        raise PermissionDeniedError("not authorized")

    assert sorted(read_each(NAMES, read).failures) == sorted(NAMES)
    alone = read_one_by_one(NAMES, lambda name: read([name])[0])
    assert [*(name for result in alone for name in result.failures)] == NAMES


def test_few_tables_that_all_fail_are_reported() -> None:
    def read(name: str) -> CatalogTable | None:
        raise InternalError(f"cannot read {name}")

    failures = [result.failures for result in read_one_by_one(NAMES[:4], read)]
    assert [*map(sorted, failures)] == [NAMES[:4]]
