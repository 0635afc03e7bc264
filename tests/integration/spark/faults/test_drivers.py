"""Drivers killed between write and commit, and concurrent drivers: rows are exact."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lance_namespace.errors import ErrorCode
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.keys.key_lookup import find_write
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from tests.integration.spark.faults.driver_processes import Driver, race, running_driver
from tests.integration.spark.faults.table_files import age, files_of, folder_of
from tests.integration.spark.faults.table_kinds import DIR, HIVE, HIVE_MANAGED, HIVE_STORAGE, declare
from tests.servers.releases import hms_2
from tests.support.reads import read_table
from tests.support.writes import write_table

pytestmark = pytest.mark.slow

Ids = Callable[..., list[int]]
ROUNDS_AT_FULL_SIZE = 20
KINDS_ON_HIVE = (HIVE_STORAGE, HIVE_MANAGED)


@pytest.fixture(scope="module")
def drivers() -> Iterator[tuple[Driver, Driver]]:
    """Two running drivers."""
    with running_driver() as one, running_driver() as other:
        assert [driver.answer() for driver in (one, other)] == [{"ready": True}] * 2
        yield one, other


@pytest.fixture(params=[HIVE_MANAGED, pytest.param(DIR, marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest) -> str:
    """A storage-managed and a managed table."""
    return str(request.param)


ROUNDS = [0, *(pytest.param(number, marks=pytest.mark.long) for number in range(1, ROUNDS_AT_FULL_SIZE))]
"""The numbers of the rounds: a race is the same in each, and the first shows what holds."""


@pytest.fixture(params=ROUNDS)
def table(spec: NamespaceSpec, database: str, kind: str) -> str:
    """A new table for each repetition of a race."""
    return declare(spec, database, kind)


@pytest.fixture(params=[[], [7]], ids=["on-first-write", "on-append"])
def before(request: pytest.FixtureRequest, spark: SparkSession, spec: NamespaceSpec, table: str) -> list[int]:
    """The rows of the table before the race."""
    rows: list[int] = request.param
    if rows:
        write_table(spark.range(7, 8), spec, table)
    return rows


def test_two_drivers_with_the_same_key_make_one_commit(
    drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids, before: list[int]
) -> None:
    answers = race(drivers, spec, table, keys=("january", "january"), execution_id="1")

    assert sorted(answer["outcome"] == "done" for answer in answers) == [False, True]
    assert {answer["version"] for answer in answers} == {1 + len(before)}
    assert ids() in (sorted([*before, *range(10)]), sorted([*before, *range(100, 110)]))


def test_of_two_executions_with_the_same_key_one_is_refused(
    drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids, before: list[int]
) -> None:
    answers = race(drivers, spec, table, keys=("january", "january"))

    [refused] = [number for number, answer in enumerate(answers) if "code" in answer]
    assert answers[refused]["code"] == int(ErrorCode.CONCURRENT_MODIFICATION)
    assert answers[1 - refused]["version"] == 1 + len(before)
    assert ids() in (sorted([*before, *range(10)]), sorted([*before, *range(100, 110)]))


def test_two_drivers_with_different_keys_both_append(
    drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids, before: list[int]
) -> None:
    answers = race(drivers, spec, table, keys=("january", "february"))

    assert sorted(answer["version"] for answer in answers) == [1 + len(before), 2 + len(before)]
    assert ids() == sorted([*before, *range(10), *range(100, 110)])


@pytest.mark.parametrize(
    ("mode", "code"),
    [("create", ErrorCode.TABLE_ALREADY_EXISTS), ("overwrite", ErrorCode.CONCURRENT_MODIFICATION)],
)
def test_one_of_two_concurrent_overwrites_is_refused(
    drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids, mode: str, code: ErrorCode
) -> None:
    answers = race(drivers, spec, table, keys=("january", "february"), mode=mode)

    [refused] = [number for number, answer in enumerate(answers) if "code" in answer]
    assert answers[refused]["code"] == int(code)
    assert ids() == (list(range(100, 110)) if refused == 0 else list(range(10)))


UPSERT = {"mode": "upsert", "on": ["id"]}


def test_concurrent_upserts_leave_each_key_once(
    spark: SparkSession, drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    write_table(spark.range(8, 20), spec, table)

    answers = race(drivers, spec, table, keys=("january", "february"), ids=((0, 10), (5, 15)), **UPSERT)

    assert sorted(answer["version"] for answer in answers) == [2, 3]
    assert ids() == list(range(20))


def test_concurrent_upserts_with_the_same_key_make_one_commit(
    spark: SparkSession, drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    write_table(spark.range(5), spec, table)

    answers = race(
        drivers, spec, table, keys=("january", "january"), ids=((0, 10), (0, 10)), execution_id="1", **UPSERT
    )

    assert [answer["version"] for answer in answers] == [2, 2]
    assert ids() == list(range(10))


def test_one_of_two_concurrent_replacements_wins_and_the_other_can_be_repeated(
    spark: SparkSession, drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    write_table(spark.range(7, 8), spec, table)
    write_table(spark.range(20, 30), spec, table, key="january", fingerprint="wrong")
    jobs = ((0, 5), "one"), ((100, 105), "other")
    for driver, (rows, fingerprint) in zip(drivers, jobs, strict=True):
        correction = {"fingerprint": fingerprint, "on_existing_key": "redo_if_changed"}
        driver.start_writing(spec, table, rows, key="january", **correction)
    for driver in drivers:
        driver.arrive()
    for driver in drivers:
        driver.go_on()

    answers = [driver.answer() for driver in drivers]

    [refused] = [number for number, answer in enumerate(answers) if "code" in answer]
    assert answers[refused]["code"] == int(ErrorCode.CONCURRENT_MODIFICATION)
    (first, end), _ = jobs[1 - refused]
    assert ids() == sorted([7, *range(first, end)])
    (first, end), fingerprint = jobs[refused]
    write_table(
        spark.range(first, end),
        spec,
        table,
        key="january",
        fingerprint=fingerprint,
        on_existing_key="redo",
    )
    assert ids() == sorted([7, *range(first, end)])


@pytest.mark.long  # `test_lost_metastore` covers every step, without a separate server
def test_rows_are_exact_after_a_metastore_outage_at_the_commit(
    spark: SparkSession, drivers: tuple[Driver, Driver], tmp_path: Path, database: str
) -> None:
    with MetastoreServer(hms_2(), tmp_path / "metastore") as server:
        spec = NamespaceSpec(HIVE, {"uri": server.uri, "root": str(tmp_path)})
        tables = [declare(spec, f"{database}_{n}", kind) for n, kind in enumerate(KINDS_ON_HIVE)]
        for driver, table in zip(drivers, tables, strict=True):
            write_table(spark.range(7, 8), spec, table)
            driver.start_writing(spec, table, (100, 110), key="january")
            driver.arrive()
        server.kill()
        for driver in drivers:
            driver.go_on()
        answers = [driver.answer() for driver in drivers]
        server.start()

        retries = [write_table(spark.range(100, 110), spec, t, key="january") for t in tables]

        # A storage-managed table needs no metastore to commit.
        assert answers[0]["version"] == 2
        assert answers[1]["code"] == int(ErrorCode.SERVICE_UNAVAILABLE)
        assert [(retry.version, retry.is_done) for retry in retries] == [(2, False), (2, True)]
        for table in tables:
            rows = read_table(spark, spec, table).collect()
            assert sorted(row["id"] for row in rows) == [7, *range(100, 110)]
            assert find_write(spec, table, "january") is not None


@pytest.mark.parametrize("kind", [HIVE_MANAGED])
@pytest.mark.parametrize("table", [0], indirect=True)
def test_a_clean_up_keeps_exactly_the_files_of_versions_and_running_drivers(
    spark: SparkSession, drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    write_table(spark.range(7, 8), spec, table)
    folder = folder_of(spec, table)
    live = files_of(folder)
    with running_driver() as victim:
        assert victim.answer() == {"ready": True}
        victim.start_writing(spec, table, (100, 110), key="january")
        victim.arrive()
        victim.kill()
    of_the_dead = files_of(folder) - live
    drivers[0].start_writing(spec, table, (200, 210), key="february")
    drivers[0].arrive()
    of_the_running = files_of(folder) - live - of_the_dead
    [lease] = [file for file in of_the_running if "writes" in file.parts]
    age(live | of_the_dead, days=30)
    age(of_the_running - {lease}, days=19)
    age({lease}, days=20)  # it has been running for 20 days
    lease.with_name(f"{lease.name}.alive").touch()  # as it does each minute

    removed = remove_orphans(spec, table)

    assert {folder / path for path in removed.paths} == {
        file for file in of_the_dead if file.suffix == ".lance"
    }
    assert {file.parent.name for file in of_the_dead - files_of(folder)} == {"data", "writes"}
    drivers[0].go_on()
    assert drivers[0].answer()["version"] == 3  # the clean-up committed one to revoke the dead write's lease
    assert ids() == [7, *range(200, 210)]
    write_table(spark.range(100, 110), spec, table, key="january")
    assert ids() == [7, *range(100, 110), *range(200, 210)]
