"""Races at full size: 16 writers with 50 commits each, on every server, with writers killed at random."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import Distribution, EmbeddedMetastore, MetastoreServer
from tests.integration.managed.race import Race
from tests.integration.managed.race_writer import ACKNOWLEDGED
from tests.servers.glue_double import GlueDouble
from tests.servers.postgresql import metastore_settings, postgresql
from tests.servers.releases import hms_2_with_postgresql, hms_4
from tests.support.lakes import Lake, bucket_of, glue_lake, hive_lake

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
WRITERS, COMMITS, KILLS = 16, 50, 10
ALL = WRITERS * COMMITS
DEADLINE = 3000

Start = Callable[[Path], AbstractContextManager[MetastoreServer]]


def on_derby(distribution: Callable[[], Distribution]) -> Start:
    return lambda folder: MetastoreServer(distribution(), folder, heap="512m")


def on_postgresql(distribution: Callable[[], Distribution]) -> Start:
    @contextmanager
    def start(folder: Path) -> Iterator[MetastoreServer]:
        with postgresql() as port:
            settings = metastore_settings(port, "metastore")
            with MetastoreServer(distribution(), folder, settings=settings, heap="512m") as server:
                yield server

    return start


SERVERS: dict[str, Start] = {
    "2.3.10-derby": EmbeddedMetastore,
    "2.3.10-postgresql": on_postgresql(hms_2_with_postgresql),
    "4.0.1-derby": on_derby(hms_4),
    "4.0.1-postgresql": on_postgresql(hms_4),
}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MetastoreServer]:
    with SERVERS[request.param](tmp_path / "metastore") as started:
        yield started


@pytest.fixture(params=["local", "s3"])
def glue_any(request: pytest.FixtureRequest, glue: GlueDouble, database: str, tmp_path: Path) -> Lake:
    return glue_lake(glue, str(tmp_path) if request.param == "local" else bucket_of(glue, database))


def race(lake: Lake, database: str, tmp_path: Path) -> Race:
    return Race(lake, lake.declare(database), tmp_path / "race", COMMITS, DEADLINE)


def run_to_the_end(running: Race) -> None:
    running.start([None] * WRITERS)
    assert running.finish() == [0] * WRITERS
    assert running.table.version == ALL + 1
    running.check()


def kill_some_writers(running: Race) -> None:
    """Kill half of the writers at random times."""
    running.start([None] * WRITERS)
    doomed = random.sample(running.writers, KILLS)
    for number, writer in enumerate(doomed):
        running.wait_for(ALL * (number + 1) // (4 * KILLS))
        writer.kill()
    running.finish()
    running.check()


def test_every_commit_is_applied_once_on_hive(server: MetastoreServer, database: str, tmp_path: Path) -> None:
    with race(hive_lake(server, tmp_path), database, tmp_path) as running:
        run_to_the_end(running)


def test_every_commit_is_applied_once_on_glue(glue_any: Lake, database: str, tmp_path: Path) -> None:
    with race(glue_any, database, tmp_path) as running:
        run_to_the_end(running)


def test_killed_writers_lose_and_duplicate_nothing_on_hive(
    server: MetastoreServer, database: str, tmp_path: Path
) -> None:
    with race(hive_lake(server, tmp_path), database, tmp_path) as running:
        kill_some_writers(running)


def test_killed_writers_lose_and_duplicate_nothing_on_glue(
    glue_any: Lake, database: str, tmp_path: Path
) -> None:
    with race(glue_any, database, tmp_path) as running:
        kill_some_writers(running)


def test_a_metastore_killed_ten_times_loses_and_duplicates_nothing(
    server: MetastoreServer, database: str, tmp_path: Path
) -> None:
    with race(hive_lake(server, tmp_path), database, tmp_path) as running:
        running.start([None] * WRITERS)
        for kill in range(KILLS):
            running.wait_for(len(running.noted(ACKNOWLEDGED)) + ALL // (2 * KILLS) if kill else WRITERS)
            server.kill()
            server.start()
        running.finish()
        running.check()
