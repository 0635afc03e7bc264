"""Maintenance as Airflow tasks, on a managed table of a real metastore."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, LanceRetryableError
from airflow_provider_lancens.operators import (
    LanceCleanUpVersionsOperator,
    LanceCompactTableOperator,
    LanceCreateIndexOperator,
    LanceRemoveOrphansOperator,
)
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.spark.maintenance import compact
from tests.support.maintained_tables import Maintained, Meanwhile, Run


def test_a_table_is_compacted_indexed_and_cleaned_up_once(hive: Maintained, run: Run) -> None:
    hive.write_small_files(6)
    index = {"column": "id", "index_type": "BTREE"}

    compacted, moved = run(LanceCompactTableOperator, options={"target_rows_per_fragment": 100})
    compacted_again, not_moved = run(LanceCompactTableOperator)
    indexed, moved_on = run(LanceCreateIndexOperator, **index)
    indexed_again, _ = run(LanceCreateIndexOperator, **index)
    said, _ = run(LanceCleanUpVersionsOperator, older_than=timedelta(0), dry_run=True)
    cleaned, no_move = run(LanceCleanUpVersionsOperator, older_than=timedelta(0))

    newest = indexed["version"]
    assert hive.described.version == newest == compacted["version"] + 1
    assert (compacted["fragments_removed"], compacted["outcome"]) == (6, "done")
    assert (compacted_again["version"], compacted_again["outcome"] == "done") == (compacted["version"], False)
    place = {"table": hive.id, "location": hive.described.location}
    versions = {**place, "previous_version": 1, "version": compacted["version"]}
    assert moved == {**versions, "operation": "compact"}
    versions = {**place, "previous_version": compacted["version"], "version": newest}
    assert moved_on == {**versions, "operation": "create_index"}
    assert not_moved["previous_version"] == not_moved["version"] == compacted["version"]
    assert no_move == {}
    assert (indexed["outcome"], indexed_again["outcome"] == "done", indexed["rows"]) == ("done", False, 60)
    assert said["versions"] == cleaned["versions"] == newest - 1
    assert hive.ids() == list(range(60))


def test_no_spark_is_started_if_there_is_nothing_to_do(
    hive: Maintained, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive.write_small_files(1)
    index = {"column": "id", "index_type": "BTREE"}
    run(LanceCreateIndexOperator, **index)
    monkeypatch.setattr(LanceSparkOperator, "spark", lambda *_: pytest.fail("Spark was started"))

    compacted, _ = run(LanceCompactTableOperator)
    indexed, _ = run(LanceCreateIndexOperator, **index)

    assert (compacted["outcome"] == "done", indexed["outcome"] == "done") == (False, False)


def test_a_transient_failure_is_retried(hive: Maintained, run: Run, meanwhile: Meanwhile) -> None:
    hive.write_small_files(6)
    meanwhile(compact, lambda: hive.newest.delete("id < 5"))

    with pytest.raises(LanceRetryableError, match=r"compacting table 'db_.*run it again"):
        run(LanceCompactTableOperator)


def test_a_permanent_failure_is_not_retried(hive: Maintained, run: Run) -> None:
    hive.write_small_files(1)

    with pytest.raises(AirflowFailException, match=r"building an index of .*column='nope' does"):
        run(LanceCreateIndexOperator, column="nope", index_type="BTREE")


def test_only_files_that_no_version_needs_are_removed(hive: Maintained, run: Run) -> None:
    hive.write_small_files(2)
    left_behind = Path(hive.described.location) / "data" / "of_a_failed_write.lance"
    left_behind.write_bytes(b"0123456789")
    long_ago = time.time() - timedelta(days=8).total_seconds()
    os.utime(left_behind, (long_ago, long_ago))

    said, _ = run(LanceRemoveOrphansOperator, dry_run=True)
    was_there = left_behind.exists()
    removed, no_move = run(LanceRemoveOrphansOperator)

    assert (said["files"], said["bytes"], was_there) == (1, 10, True)
    assert (removed["files"], left_behind.exists(), no_move) == (1, False, {})
    assert hive.ids() == list(range(20))


def test_a_minimum_age_shorter_than_a_running_write_is_refused(hive: Maintained, run: Run) -> None:
    with pytest.raises(AirflowFailException, match=r"older_than: expected at least 0:10:00, got 0:01:00"):
        run(LanceRemoveOrphansOperator, older_than=timedelta(minutes=1))
