"""Runs killed by SIGKILL: the next one goes on, and repeats at most one fragment for each worker."""

import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_lancens.spark.maintenance import orphans
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from tests.integration.spark.compute.computing_process import CORES, noting, run_and_kill
from tests.support.computed_tables import compute, data_files, expected, fill, folder, values
from tests.support.maintained_tables import Maintained

pytestmark = pytest.mark.thorough

FRAGMENTS = 12


@pytest.mark.parametrize(
    ("table", "kills"),
    [
        ("managed", [5]),
        pytest.param("managed", [5, 9], marks=pytest.mark.long),
        pytest.param("stored", [5, 9], marks=pytest.mark.long),
    ],
    indirect=["table"],
)
def test_a_killed_run_is_continued(table: Maintained, tmp_path: Path, kills: list[int]) -> None:
    fill(table, FRAGMENTS)
    log = tmp_path / "begun"

    for begun in kills:
        run_and_kill(table.spec, table.id, log, begun)
    time.sleep(1)  # a worker of the killed driver may be at the end of its batch
    done = {number for number, value in values(table).items() if value is not None}
    compute(table, noting(log, 0))

    assert done, "nothing was committed before the run was killed"
    assert values(table) == expected(range(10 * FRAGMENTS))
    times = Counter(log.read_text().split())
    assert set(times) == {str(10 * number) for number in range(FRAGMENTS)}
    assert times.total() - FRAGMENTS <= len(kills) * CORES


@pytest.mark.long
def test_files_of_a_killed_run_are_orphans(
    stored: Maintained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stored, FRAGMENTS)
    run_and_kill(stored.spec, stored.id, tmp_path / "begun", 5)
    uncommitted = folder(stored) / "data" / "computed-0.lance"
    uncommitted.write_bytes(b"of a run that was killed before its commit")
    time.sleep(1)
    compute(stored)
    for name in ("SHORTEST", "_SLACK"):
        monkeypatch.setattr(orphans, name, timedelta(0))
    removed = remove_orphans(stored.spec, stored.id, older_than=timedelta(0))

    kept = {file.path for fragment in stored.newest.get_fragments() for file in fragment.metadata.files}
    assert f"data/{uncommitted.name}" in removed.paths
    assert {name for name in data_files(stored) if name.endswith(".lance")} == kept
    assert values(stored) == expected(range(10 * FRAGMENTS))
