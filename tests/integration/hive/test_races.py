"""Concurrent calls: one succeeds, and all others raise the specification's error."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace, Hive3Namespace
from tests.support.hive_databases import drop_all

WON = "won"
RACERS = 16


def race(attempt: Callable[[int], object], racers: int = RACERS) -> Counter[str | ErrorCode]:
    """Start all attempts at the same time, and count their results."""
    start = threading.Barrier(racers)

    def run(number: int) -> str | ErrorCode:
        start.wait()
        try:
            attempt(number)
        except LanceNamespaceError as error:
            return error.code
        return WON

    with ThreadPoolExecutor(racers) as pool:
        return Counter(pool.map(run, range(racers)))


@pytest.fixture
def crowd(namespace: Hive2Namespace) -> list[Hive2Namespace]:
    """A connected namespace for each thread."""
    patient = {**namespace._properties, "client.read-timeout": "300"}
    crowd = [Hive2Namespace(**patient) for _ in range(RACERS)]
    for one in crowd:
        one.list_namespaces({"id": []})
    return crowd


def test_a_race_to_declare_a_table_has_one_winner(crowd: list[Hive2Namespace], db: str) -> None:
    def declare(number: int) -> object:
        return crowd[number].declare_table({"id": [db, "t"], "properties": {"racer": str(number)}})

    assert race(declare) == {WON: 1, ErrorCode.TABLE_ALREADY_EXISTS: RACERS - 1}


def test_a_race_to_create_a_namespace_has_one_winner(
    crowd: list[Hive2Namespace], namespace: Hive2Namespace, database: str
) -> None:
    ended = race(lambda number: crowd[number].create_namespace({"id": [database]}))
    assert ended == {WON: 1, ErrorCode.NAMESPACE_ALREADY_EXISTS: RACERS - 1}
    drop_all(namespace, database)


@pytest.mark.slow
def test_a_race_to_create_a_catalog_has_one_winner(
    hms4: MetastoreServer, database: str, tmp_path: Path
) -> None:
    crowd = [Hive3Namespace(uri=hms4.uri, root=str(tmp_path)) for _ in range(RACERS)]
    ended = race(lambda number: crowd[number].create_namespace({"id": [database]}))
    assert ended == {WON: 1, ErrorCode.NAMESPACE_ALREADY_EXISTS: RACERS - 1}
    crowd[0].drop_namespace({"id": [database]})


@pytest.mark.slow
def test_a_race_to_deregister_a_table_deregisters_it(crowd: list[Hive2Namespace], db: str) -> None:
    # In Hive, several concurrent drops of one table succeed, without a way to tell which one dropped it.
    crowd[0].declare_table({"id": [db, "t"]})
    ended = race(lambda number: crowd[number].deregister_table({"id": [db, "t"]}))
    assert ended[WON] >= 1
    assert set(ended) <= {WON, ErrorCode.TABLE_NOT_FOUND}
    assert crowd[0].list_tables({"id": [db]}).tables == []


@pytest.mark.slow
def test_a_race_to_drop_a_namespace_drops_it(
    crowd: list[Hive2Namespace], namespace: Hive2Namespace, db: str
) -> None:
    for number in range(5):
        namespace.declare_table({"id": [db, f"t{number}"]})
    ended = race(lambda number: crowd[number].drop_namespace({"id": [db], "behavior": "cascade"}), racers=4)
    assert ended[WON] >= 1
    assert set(ended) <= {WON, ErrorCode.NAMESPACE_NOT_FOUND}
    assert db not in namespace.list_namespaces({"id": []}).namespaces
