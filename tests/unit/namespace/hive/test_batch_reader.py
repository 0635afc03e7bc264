"""How many tables one call to a metastore reads, and what a slow or a failing batch costs."""

from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from lance_namespace.errors import InternalError, ServiceUnavailableError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.hive import batch_reader
from airflow_provider_lancens.namespace.hive.batch_reader import HiveBatchReader
from airflow_provider_lancens.namespace.hive.converters import Hive2Dialect
from airflow_provider_lancens.namespace.hive.pool import LostReplyError

DB = NamespaceId.of(["db"])
TIMEOUT = 60.0


class Server:
    """Returns tables after so many seconds each, or fails."""

    def __init__(self, seconds: Callable[[str], float] = lambda name: 0.0) -> None:
        self.now = 0.0
        self.batches: list[int] = []
        self.read_names: Counter[str] = Counter()
        self.broken: frozenset[str] = frozenset()
        self._seconds = seconds
        self._client = SimpleNamespace(get_table_objects_by_name_req=self._tables)

    def monotonic(self) -> float:
        return self.now

    def read(self, error_map: object, attempt: str, rpc: Callable[[Any], Any]) -> Any:
        return rpc(SimpleNamespace(dialect=Hive2Dialect(), client=self._client))

    def _tables(self, request: Any) -> Any:
        names = request.tblNames
        self.batches.append(len(names))
        self.read_names.update(names)
        needed = sum(map(self._seconds, names))
        self.now += min(needed, TIMEOUT)
        if needed > TIMEOUT:
            raise LostReplyError("it did not respond", timed_out=True)
        if self.broken.intersection(names):
            raise InternalError("a table can't be read")
        return SimpleNamespace(tables=[_raw(name) for name in names])


def _raw(name: str) -> Any:
    return SimpleNamespace(tableName=name, parameters={}, tableType="EXTERNAL_TABLE", sd=None, createTime=1)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server, int], list[str]]:
    """Read so many tables; returns the names of those that were read."""

    def read_all(server: Server, count: int) -> list[str]:
        monkeypatch.setattr(batch_reader, "time", server)
        names = [f"t{number:05}" for number in range(count)]
        reads = HiveBatchReader(server, TIMEOUT).read(DB, names)  # type: ignore[arg-type]
        return [table.id.name for read in reads for table in read.tables]

    return read_all


Read = Callable[[Server, int], list[str]]


def test_a_fast_server_is_asked_for_five_hundred_tables_at_once(read: Read) -> None:
    server = Server()
    assert len(read(server, 3000)) == 3000
    assert server.batches == [100, 200, 400, 500, 500, 500, 500, 300]


def test_a_slow_server_is_asked_for_as_many_as_it_returns_in_a_part_of_the_timeout(read: Read) -> None:
    server = Server(lambda name: 0.2)
    assert len(read(server, 500)) == 500
    assert server.batches == [100, 50, 50, 50, 50, 50, 50, 50, 50]


def test_a_batch_that_times_out_is_read_in_parts_and_no_other_one_is_repeated(read: Read) -> None:
    server = Server(lambda name: 1.0 if "t00300" <= name < "t00400" else 0.0)
    assert len(read(server, 1000)) == 1000
    assert max(server.read_names.values()) == 2
    repeated = [name for name, times in server.read_names.items() if times > 1]
    assert len(repeated) <= 500
    assert server.now < 3 * TIMEOUT


def test_a_server_that_does_not_answer_costs_two_timeouts(read: Read) -> None:
    server = Server(lambda name: 2 * TIMEOUT)
    with pytest.raises(ServiceUnavailableError):
        read(server, 3000)
    assert server.batches == [100, 10]


def test_few_tables_are_not_asked_for_twice(read: Read) -> None:
    server = Server(lambda name: 2 * TIMEOUT)
    with pytest.raises(ServiceUnavailableError):
        read(server, 10)
    assert server.batches == [10]


def test_a_broken_table_repeats_only_parts_of_its_own_batch(read: Read) -> None:
    server = Server()
    server.broken = frozenset(["t02000"])
    assert len(read(server, 3000)) == 2999
    assert sum(server.read_names.values()) <= 3000 + 2 * 500
    assert len(server.batches) <= 8 + 2 * 9


def test_tables_are_read_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    monkeypatch.setattr(batch_reader, "time", server)
    reads: Iterator[object] = HiveBatchReader(server, TIMEOUT).read(  # type: ignore[arg-type]
        DB, [f"t{number}" for number in range(1000)]
    )
    assert not server.batches
    next(reads)
    assert server.batches == [100]
