"""Metrics, as a StatsD server and an OpenTelemetry collector receive them from Airflow's own client."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens.hooks import LanceHook, metrics
from airflow_provider_lancens.hooks.airflow_errors import AirflowException
from airflow_provider_lancens.hooks.metrics import (
    METRICS,
    count_poll,
    count_wait,
    counted_listing,
    observer,
    send,
)
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.observed import AttemptLost, Committed, Ended, Failed
from airflow_provider_lancens.spark.results import (
    CompactionResult,
    ComputeResult,
    ExpireResult,
    FreshnessResult,
    OrphansResult,
    WriteResult,
)
from tests.support.statsd import StatsdServer, metrics_of_a_new_process

Connect = Callable[..., str]
LOST = "metrics of Lance tables are lost, and the work goes on"
TAGS = "lance_conn_id=lake,table=db.t,operation=append"
ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def statsd(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatsdServer]:
    """A StatsD server to which Airflow sends metrics."""
    with StatsdServer.running() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        with metrics_of_a_new_process(monkeypatch):
            yield server


@pytest.fixture
def table(connect: Connect, tmp_path: Path) -> str:
    """A declared table in a folder, read through the connection ``lake``."""
    lake = LanceHook(connect(conn_type="lance", extra={"root": str(tmp_path)})).catalog()
    lake.create_namespace("db")
    lake.declare_table("db.t")
    return "db.t"


def write_result(**fields: Any) -> WriteResult:
    given = {"table": "db$t", "operation": "append", "outcome": "done", "version": 2, "previous_version": 1}
    return WriteResult(**{**given, "seconds": 0.5, **fields})


def aged(seconds: float | None) -> FreshnessResult:
    given: dict[str, Any] = {"operation": "check_freshness", "outcome": "unchanged", "seconds": 0.1}
    of: dict[str, Any] = {"table": "db$t", "version": 2, "previous_version": 2, "updated_at": None}
    return FreshnessResult(**given, **of, age_seconds=seconds, max_age_seconds=60.0, is_late=True)


def test_the_age_of_data_is_a_gauge_and_no_operation(statsd: StatsdServer) -> None:
    for seconds in (None, 60.5):
        observer("lake")(Ended(aged(seconds)))

    assert statsd.received() == ["lance.data.age,lance_conn_id=lake,table=db.t:60.5|g"]


def test_a_check_of_the_age_by_a_hook_sends_it(statsd: StatsdServer, table: str) -> None:
    LanceHook("lake").table(table).append(ROWS)
    statsd.received()
    LanceHook("lake").table(table).check_freshness(max_age="PT1H")

    assert list(statsd.counted()) == ["lance.data.age,lance_conn_id=lake,table=db.t"]


def test_a_write_counts_its_rows_files_and_bytes(statsd: StatsdServer) -> None:
    observer("lake")(Ended(write_result(inserted=3, updated=2, deleted=1, files=1, bytes=900)))

    assert statsd.received() == [
        f"lance.operation.done,{TAGS}:1|c",
        f"lance.operation.duration,{TAGS}:500.000000|ms",
        f"lance.rows.inserted,{TAGS}:3|c",
        f"lance.rows.updated,{TAGS}:2|c",
        f"lance.rows.deleted,{TAGS}:1|c",
        f"lance.files.written,{TAGS}:1|c",
        f"lance.bytes.written,{TAGS}:900|c",
    ]


@pytest.mark.parametrize("outcome", ["found", "skipped", "unchanged", "planned"])
def test_what_was_written_before_is_not_counted_again(outcome: Any, statsd: StatsdServer) -> None:
    observer("lake")(Ended(write_result(outcome=outcome, inserted=3, files=1, bytes=900)))

    assert statsd.counted() == {f"lance.operation.{outcome},{TAGS}": 1}


@pytest.mark.parametrize("operation", ["publish", "restore"])
def test_a_version_without_new_files_counts_no_rows(operation: str, statsd: StatsdServer) -> None:
    observer("lake")(Ended(write_result(operation=operation, inserted=3, files=1, bytes=900)))

    assert statsd.counted() == {f"lance.operation.done,{TAGS.replace('append', operation)}": 1}


def test_a_clean_up_counts_what_it_removed_and_a_column_its_files(statsd: StatsdServer) -> None:
    of: dict[str, Any] = {"table": "db$t", "version": 3, "previous_version": 3, "seconds": 1.0}
    told = observer("lake")
    told(
        Ended(ExpireResult(operation="expire_versions", outcome="done", versions=2, files=4, bytes=70, **of))
    )
    told(Ended(OrphansResult(operation="remove_orphans", outcome="done", files=1, bytes=5, **of)))
    told(Ended(CompactionResult(operation="compact", outcome="done", **of)))
    computed = {"column": "n", "computed": 3, "nulls": 0, "files": 2, "bytes": 60, "commits": 1}
    told(Ended(ComputeResult(operation="compute_column", outcome="done", **computed, **of)))

    assert {name: count for name, count in statsd.counted().items() if "operation.done" not in name} == {
        "lance.files.removed,lance_conn_id=lake,table=db.t,operation=expire_versions": 4,
        "lance.bytes.removed,lance_conn_id=lake,table=db.t,operation=expire_versions": 70,
        "lance.files.removed,lance_conn_id=lake,table=db.t,operation=remove_orphans": 1,
        "lance.bytes.removed,lance_conn_id=lake,table=db.t,operation=remove_orphans": 5,
        "lance.files.written,lance_conn_id=lake,table=db.t,operation=compute_column": 2,
        "lance.bytes.written,lance_conn_id=lake,table=db.t,operation=compute_column": 60,
    }


def test_each_metric_is_sent_by_something_that_happens(statsd: StatsdServer) -> None:
    told = observer("lake")
    for outcome in ("done", "staged", "found", "skipped", "unchanged", "planned"):
        told(Ended(write_result(outcome=outcome, inserted=1, updated=1, deleted=1, files=1, bytes=1)))
    told(Failed("db$t", "append"))
    told(Committed("db$t", "append", 0.1))
    told(AttemptLost("db$t", "append", is_conflict=True, is_repeated=True))
    told(Ended(aged(60.5)))
    of: dict[str, Any] = {"table": "db$t", "version": 3, "previous_version": 3, "seconds": 1.0}
    told(Ended(ExpireResult(operation="expire_versions", outcome="done", files=4, bytes=70, **of)))
    for failed in (0, 1):
        count_poll("lake", 0.1, tables=1, waits=2, failed=failed)
    with counted_listing("lake", TableId.parse("db$t")):
        pass
    with pytest.raises(OSError, match="gone"), counted_listing("lake", TableId.parse("db$t")):
        raise OSError("gone")
    for ended in ("succeeded", "timed_out", "failed"):
        count_wait(ended, 1.0, "db.t", "lake")

    sent = {}
    for line in statsd.received():
        name, *tags = line.partition(":")[0].split(",")
        sent[name] = {tag.partition("=")[0] for tag in tags}
    assert sent == {name: set(metric.tags) for name, metric in METRICS.items()}


def test_only_a_lost_attempt_that_is_made_again_is_a_retry(statsd: StatsdServer) -> None:
    told = observer("lake")
    told(AttemptLost("db$t", "append", is_conflict=True, is_repeated=False))
    told(AttemptLost("db$t", "append", is_conflict=False, is_repeated=True))

    assert statsd.counted() == {f"lance.commit.conflicts,{TAGS}": 1, f"lance.commit.retries,{TAGS}": 1}


def test_a_tag_has_only_characters_that_every_backend_takes(statsd: StatsdServer) -> None:
    count_wait("failed", 1.0, "db$größe, a=b|c:1", "lake")

    assert list(statsd.counted()) == ["lance.wait.failed,lance_conn_id=lake,table=db.gr__e__a_b_c_1"]


def test_a_wait_for_several_tables_has_no_table(statsd: StatsdServer) -> None:
    count_wait("succeeded", 1.5, None, "lake")

    assert statsd.received() == [
        "lance.wait.succeeded,lance_conn_id=lake:1|c",
        "lance.wait.duration,lance_conn_id=lake:1500.000000|ms",
    ]


def test_a_client_that_fails_is_reported_once_and_raises_nothing(
    statsd: StatsdServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("the collector is gone")

    monkeypatch.setattr(metrics._client(), "incr", broken)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            send(METRICS["lance.poll.succeeded"], 1, lance_conn_id="lake")

    assert [record.getMessage() for record in caplog.records] == [
        f"Airflow's metrics: RuntimeError: the collector is gone; {LOST}"
    ]


def test_a_write_by_a_hook_is_counted_once(statsd: StatsdServer, table: str) -> None:
    LanceHook("lake").table(table).append(ROWS)

    counts = statsd.counted()
    assert counts.pop(f"lance.bytes.written,{TAGS}") > 100
    assert counts == {
        f"lance.operation.done,{TAGS}": 1,
        f"lance.commit.made,{TAGS}": 1,
        f"lance.rows.inserted,{TAGS}": 3,
        f"lance.files.written,{TAGS}": 1,
    }


def test_a_lost_commit_is_counted_as_a_conflict_and_its_repetition_as_a_retry(
    statsd: StatsdServer, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, attempt, others = LanceHook("lake"), Committer._attempt, []

    def after_another_writer(self: Committer, *arguments: Any) -> bool:
        if not others:
            others.append(None)
            LanceHook("lake").table(table).append(ROWS)
            statsd.received()
        return attempt(self, *arguments)

    hook.table(table).append(ROWS)
    statsd.received()
    monkeypatch.setattr(Committer, "_attempt", after_another_writer)
    hook.table(table).append(ROWS)

    counts = statsd.counted()
    assert counts[f"lance.commit.conflicts,{TAGS}"] == counts[f"lance.commit.retries,{TAGS}"] == 1
    assert counts[f"lance.commit.made,{TAGS}"] == counts[f"lance.operation.done,{TAGS}"] == 1


def test_a_write_that_fails_is_counted(statsd: StatsdServer, table: str) -> None:
    hook = LanceHook("lake")
    hook.table(table).append(ROWS)
    statsd.received()
    with pytest.raises(AirflowException):
        hook.table(table).append(pa.table({"other": ["x"]}))

    assert statsd.counted() == {f"lance.operation.failed,{TAGS}": 1}


def test_nothing_is_imported_or_observed_if_metrics_are_off(connect: Connect, tmp_path: Path) -> None:
    connect(conn_type="lance", extra={"root": str(tmp_path)})
    program = """if True:
        import sys
        import pyarrow as pa
        from airflow_provider_lancens.hooks import LanceHook
        lake = LanceHook("lake").catalog()
        lake.create_namespace("db")
        loaded = set(sys.modules)
        lake.declare_table("db.t")
        lake.table("db.t").append(pa.table({"id": [1]}))
        assert not hasattr(lake.namespace, "lancens_observer")
        found = {name for name in set(sys.modules) if "statsd" in name or "opentelemetry.exporter" in name}
        print(sorted(found), "airflow.stats" in set(sys.modules) - loaded)
    """

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[] False")
