"""Concurrent writers in many processes: every acknowledged commit exists once, even if some are killed."""

import signal
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore, MetastoreServer
from tests.integration.managed.commit_points import POINTS
from tests.integration.managed.race import Race
from tests.servers.glue_double import GlueDouble
from tests.support.lakes import Lake, bucket_of, glue_lake, hive_lake

pytestmark = pytest.mark.thorough
WRITERS, COMMITS = 4, 10


@pytest.fixture
def glue_s3(glue: GlueDouble, database: str) -> Lake:
    return glue_lake(glue, bucket_of(glue, database))


@pytest.fixture
def hive_4(hms4: MetastoreServer, tmp_path: Path) -> Lake:
    return hive_lake(hms4, tmp_path)


# Release 4's compare-and-set has fewer writers in `test_interleavings` and in `hive/test_races`.
@pytest.mark.parametrize(
    "kind",
    ["hive", pytest.param("hive_4", marks=pytest.mark.long), pytest.param("glue_s3", marks=pytest.mark.long)],
)
def test_every_commit_of_concurrent_writers_is_applied_once(
    kind: str, request: pytest.FixtureRequest, database: str, tmp_path: Path
) -> None:
    lake: Lake = request.getfixturevalue(kind)
    with Race(lake, lake.declare(database), tmp_path / "race", COMMITS) as race:
        race.start([None] * WRITERS)
        assert race.finish() == [0] * WRITERS
        assert race.table.version == WRITERS * COMMITS + 1
        race.check()


def test_writers_killed_at_each_commit_step_lose_and_duplicate_nothing(
    hive: Lake, database: str, tmp_path: Path
) -> None:
    with Race(hive, hive.declare(database), tmp_path / "race", COMMITS) as race:
        race.start([*POINTS, None])
        assert race.finish() == [-signal.SIGKILL] * len(POINTS) + [0]
        race.check()


@pytest.mark.long  # each change kills them at each step
def test_writers_killed_at_random_lose_and_duplicate_nothing(
    glue_s3: Lake, database: str, tmp_path: Path
) -> None:
    with Race(glue_s3, glue_s3.declare(database), tmp_path / "race", COMMITS) as race:
        race.start([None] * WRITERS)
        for number in range(WRITERS - 1):
            race.wait_for(3 * (number + 1))
            race.writers[number].kill()
        race.finish()
        race.check()


def test_a_metastore_killed_and_restarted_loses_and_duplicates_nothing(database: str, tmp_path: Path) -> None:
    with EmbeddedMetastore(tmp_path / "metastore") as server:
        lake = hive_lake(server, tmp_path)
        with Race(lake, lake.declare(database), tmp_path / "race", COMMITS) as race:
            race.start([None] * WRITERS)
            race.wait_for(WRITERS)
            server.kill()
            server.start()
            assert race.finish() == [0] * WRITERS
            race.check()
