"""Drivers that die between write and commit, and drivers that race: rows are exact afterwards."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from lance_namespace.errors import ErrorCode
from pyspark.sql import SparkSession

from airflow_provider_lancens.spark import NamespaceSpec, write_table
from tests.integration.spark.drivers import Driver, running_driver

pytestmark = pytest.mark.slow

Ids = Callable[..., list[int]]
ROUNDS = 3
HIVE = "airflow_provider_lancens.namespace.Hive2Namespace"


@pytest.fixture(scope="module")
def drivers() -> Iterator[tuple[Driver, Driver]]:
    """Two drivers that are both alive."""
    with running_driver() as one, running_driver() as other:
        assert [driver.answer() for driver in (one, other)] == [{"ready": True}] * 2
        yield one, other


@pytest.fixture(params=["dir", "hive-managed"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> NamespaceSpec:
    """A namespace where the storage decides the versions, and one where the metastore does."""
    if request.param == "dir":
        return NamespaceSpec("dir", {"root": str(tmp_path)})
    uri = request.getfixturevalue("metastore").uri
    return NamespaceSpec(HIVE, {"uri": uri, "root": str(tmp_path)})


@pytest.fixture(params=range(ROUNDS))
def table(request: pytest.FixtureRequest, spec: NamespaceSpec, database: str) -> str:
    """A race is run several times, each on a table of its own."""
    namespace = spec.connect()
    namespace.create_namespace(CreateNamespaceRequest(id=[database]))
    managed = {"managed_by": "impl"} if spec.impl == HIVE else None
    namespace.declare_table(DeclareTableRequest(id=[database, "orders"], properties=managed))
    return f"{database}$orders"


def race(
    drivers: tuple[Driver, Driver],
    spec: NamespaceSpec,
    table: str,
    *,
    keys: tuple[str, str],
    mode: str = "append",
) -> list[dict[str, int]]:
    """Let both drivers write, release them at one moment, and return their answers."""
    for driver, key, first in zip(drivers, keys, (0, 100), strict=True):
        driver.start_writing(spec, table, (first, first + 10), key=key, mode=mode)
    for driver in drivers:
        driver.arrive_at_commit()
    for driver in drivers:
        driver.go_on()
    return [driver.answer() for driver in drivers]


@pytest.mark.parametrize("first_write", [True, False], ids=["on-first-write", "on-append"])
def test_two_drivers_with_the_same_key_make_one_commit(
    spark: SparkSession,
    drivers: tuple[Driver, Driver],
    spec: NamespaceSpec,
    table: str,
    ids: Ids,
    first_write: bool,
) -> None:
    before = [] if first_write else [7]
    if before:
        write_table(spark.range(7, 8), spec, table)

    answers = race(drivers, spec, table, keys=("january", "january"))

    assert sorted(answer["committed"] for answer in answers) == [False, True]
    assert {answer["version"] for answer in answers} == {1 + len(before)}
    assert ids() in (sorted([*before, *range(10)]), sorted([*before, *range(100, 110)]))


@pytest.mark.parametrize("first_write", [True, False], ids=["on-first-write", "on-append"])
def test_two_drivers_with_different_keys_both_append(
    spark: SparkSession,
    drivers: tuple[Driver, Driver],
    spec: NamespaceSpec,
    table: str,
    ids: Ids,
    first_write: bool,
) -> None:
    before = [] if first_write else [7]
    if before:
        write_table(spark.range(7, 8), spec, table)

    answers = race(drivers, spec, table, keys=("january", "february"))

    assert sorted(answer["version"] for answer in answers) == [1 + len(before), 2 + len(before)]
    assert ids() == sorted([*before, *range(10), *range(100, 110)])


@pytest.mark.parametrize(
    ("mode", "code"),
    [("create", ErrorCode.TABLE_ALREADY_EXISTS), ("overwrite", ErrorCode.CONCURRENT_MODIFICATION)],
)
def test_of_two_drivers_that_each_want_it_all_one_is_refused(
    drivers: tuple[Driver, Driver], spec: NamespaceSpec, table: str, ids: Ids, mode: str, code: ErrorCode
) -> None:
    answers = race(drivers, spec, table, keys=("january", "february"), mode=mode)

    [refused] = [number for number, answer in enumerate(answers) if "code" in answer]
    assert answers[refused] == {"code": int(code)}
    assert ids() == (list(range(100, 110)) if refused == 0 else list(range(10)))


@pytest.mark.parametrize("table", [0], indirect=True)
def test_the_retry_after_a_killed_driver_leaves_exact_rows(
    spark: SparkSession, spec: NamespaceSpec, table: str, ids: Ids
) -> None:
    write_table(spark.range(7, 8), spec, table)
    with running_driver() as driver:
        assert driver.answer() == {"ready": True}
        driver.start_writing(spec, table, (100, 110), key="january")
        driver.arrive_at_commit()
        driver.kill()
    assert ids() == [7]

    retry = write_table(spark.range(100, 110), spec, table, idempotency_key="january")

    assert (retry.version, retry.committed) == (2, True)
    assert ids() == [7, *range(100, 110)]
