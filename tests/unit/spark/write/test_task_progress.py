"""The files by which tasks report their progress: few requests, none for a quick task, and none left."""

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace.storage.write_leases import LEASES, leases_of
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from airflow_provider_lancens.spark.write.task_progress import WriteProgress
from airflow_provider_lancens.spark.write.write_task import WriteTask
from tests.counted_requests import counted_requests

BATCH = pa.record_batch({"n": pa.array(range(100), pa.int64())})

WORKER = """
import json, pathlib, pickle, sys
import pyarrow as pa
task = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
[written] = task.run(iter([pa.record_batch({"n": pa.array(range(100), pa.int64())})]))
print(json.dumps([written["rows"][0].as_py(), "lance_namespace" in sys.modules]))
"""


@pytest.fixture
def lease(target: ResolvedTable) -> Iterator[WriteLease]:
    with acquire_lease(target.dataset).kept_alive(end=True) as lease:
        yield lease


def reports(target: ResolvedTable) -> list[str]:
    """The files beside the lease."""
    folder = Path(target.dataset.location, LEASES)
    return [file.name.partition(".")[2].partition("-")[2] for file in folder.iterdir() if "." in file.name]


def until_reported(target: ResolvedTable, report: str) -> None:
    deadline = time.monotonic() + 30
    while reports(target) != [report]:
        assert time.monotonic() < deadline, reports(target)
        time.sleep(0.01)


def test_a_task_keeps_one_file_with_its_counts(target: ResolvedTable, lease: WriteLease) -> None:
    with WriteProgress(lease, seconds=0.02).reporting(iter([BATCH, BATCH])) as batches:
        for taken, _ in enumerate(batches):
            until_reported(target, f"{100 * taken}-{800 * taken}.alive")
        until_reported(target, "200-1600.alive")

    assert reports(target) == []


def test_a_task_that_fails_leaves_no_file(target: ResolvedTable, lease: WriteLease) -> None:
    def fail_at_second_batch() -> Iterator[pa.RecordBatch]:
        yield BATCH
        until_reported(target, "100-800.alive")
        raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):  # noqa: SIM117 it is raised in the inner block
        with WriteProgress(lease, 0.02).reporting(fail_at_second_batch()) as batches:
            list(batches)

    assert reports(target) == []


def test_quick_tasks_make_no_request(lease: WriteLease) -> None:
    progress = WriteProgress(lease)

    with counted_requests() as seen, progress.logged(), progress.reporting(iter([BATCH])) as batches:
        assert list(batches) == [BATCH]

    assert not seen


def test_reports_of_killed_tasks_are_no_leases_and_go_with_the_write(
    target: ResolvedTable, caplog: pytest.LogCaptureFixture
) -> None:
    files = target.dataset.manifests
    with acquire_lease(target.dataset).kept_alive(end=True) as lease, caplog.at_level("INFO"):
        for number in (1, 2):
            files.put(f"{lease.path}.{number:032x}-3000000-250000000.alive", b"")
        with WriteProgress(lease, seconds=0.02).logged():
            deadline = time.monotonic() + 30
            while not caplog.messages:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert [one.path for one in leases_of(files)] == [lease.path]

    assert caplog.messages == ["2 running tasks have written 6,000,000 rows, 500.0 MB in memory"]
    assert files.below(LEASES) == []


def test_a_worker_writes_without_importing_the_clients_of_lance_namespace(
    target: ResolvedTable, lease: WriteLease, tmp_path: Path
) -> None:
    """They take a second to import, which the first task of each Python worker would wait for."""
    task = WriteTask(target.dataset, BATCH.schema, None, 1000, None, progress=WriteProgress(lease))
    (tmp_path / "task").write_bytes(pickle.dumps(task))

    done = subprocess.run([sys.executable, "-c", WORKER, tmp_path / "task"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [100, False]
