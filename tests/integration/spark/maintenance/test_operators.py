"""Maintenance as Airflow tasks against a real metastore that decides the table's versions."""

import os
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, Asset

from airflow_provider_lancens.hooks.errors import LanceRetryableError
from airflow_provider_lancens.operators.clean_up import (
    LanceCleanUpVersionsOperator,
    LanceRemoveOrphansOperator,
)
from airflow_provider_lancens.operators.spark_maintenance import (
    LanceCompactTableOperator,
    LanceCreateIndexOperator,
)
from airflow_provider_lancens.operators.spark_task import LanceSparkOperator
from airflow_provider_lancens.spark.maintenance import compact
from tests.integration.spark.maintenance.conftest import Maintained, Meanwhile

Run = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture
def run(hive: Maintained, connect: Callable[..., str]) -> Run:
    """Run an operator on the table as a worker does; answers its XCom and its asset event's extra."""
    lake = connect(host=hive.spec.properties["uri"], extra={"root": hive.spec.properties["root"]})
    asset = Asset(uri=f"lance://{lake}/{hive.id.replace('$', '/')}")

    def run(operator: type[Any], **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        events: dict[Any, Any] = defaultdict(lambda: SimpleNamespace(extra={}))
        task = operator(
            **{
                "task_id": "maintain",
                "table": hive.id,
                "lance_conn_id": lake,
                "outlets": [asset],
                **arguments,
            }
        )
        return task.execute({"outlet_events": events}), events[asset].extra

    return run


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
    assert (compacted["fragments_removed"], compacted["committed"]) == (6, True)
    assert (compacted_again["version"], compacted_again["committed"]) == (compacted["version"], False)
    assert moved == {"table": hive.id, "previous_version": 1, "version": compacted["version"]}
    assert moved_on == {"table": hive.id, "previous_version": compacted["version"], "version": newest}
    assert (not_moved, no_move) == ({}, {})
    assert (indexed["created"], indexed_again["created"], indexed["rows"]) == (True, False, 60)
    assert said["versions"] == cleaned["versions"] == newest - 1
    assert hive.ids() == list(range(60))


def test_no_spark_is_started_where_there_is_nothing_to_do(
    hive: Maintained, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive.write_small_files(1)
    index = {"column": "id", "index_type": "BTREE"}
    run(LanceCreateIndexOperator, **index)
    monkeypatch.setattr(LanceSparkOperator, "spark", lambda *_: pytest.fail("Spark was started"))

    compacted, _ = run(LanceCompactTableOperator)
    indexed, _ = run(LanceCreateIndexOperator, **index)

    assert (compacted["committed"], indexed["created"]) == (False, False)


def test_what_may_go_well_next_time_is_retried(hive: Maintained, run: Run, meanwhile: Meanwhile) -> None:
    hive.write_small_files(6)
    meanwhile(compact, lambda: hive.newest.delete("id < 5"))

    with pytest.raises(LanceRetryableError, match=r"compacting table 'db_.*run it again"):
        run(LanceCompactTableOperator)


def test_what_never_will_fails_for_good(hive: Maintained, run: Run) -> None:
    hive.write_small_files(1)

    with pytest.raises(AirflowFailException, match=r"building BTREE on column 'nope'.*there are"):
        run(LanceCreateIndexOperator, column="nope", index_type="BTREE")


def test_only_what_no_version_needs_is_removed(hive: Maintained, run: Run) -> None:
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


def test_an_age_that_a_running_write_may_have_is_refused(hive: Maintained, run: Run) -> None:
    with pytest.raises(AirflowFailException, match=r"older_than: expected at least 0:10:00, got 0:01:00"):
        run(LanceRemoveOrphansOperator, older_than=timedelta(minutes=1))
