"""Lost executors, failed tasks and interrupted operations, in each deployment."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.table.resolved_table import resolved_table
from tests.integration.spark.faults.table_files import clean_up, files_needed, files_of, folder_of
from tests.integration.spark.faults.table_kinds import HIVE_MANAGED, declare, spec_of
from tests.servers.spark import SMALL

pytestmark = pytest.mark.slow

Run = Callable[..., list[list[dict[str, Any] | None]]]


@pytest.fixture
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> NamespaceSpec:
    return spec_of(HIVE_MANAGED, request, tmp_path)


@pytest.fixture
def tables(spec: NamespaceSpec, database: str) -> dict[str, str]:
    """A table for each way to write."""
    return {way: declare(spec, f"{database}_{way}", HIVE_MANAGED) for way in ("frame", "files")}


@pytest.fixture
def run(spec: NamespaceSpec, tables: dict[str, str], tmp_path: Path) -> Run:
    """Write with a fault, and return the results of each way."""
    files = tmp_path / "files"
    files.mkdir()
    for first in range(0, 100, 25):
        pq.write_table(pa.table({"id": range(first, first + 25)}), files / f"{first}.parquet")

    def run(trouble: str, **conf: str) -> list[list[dict[str, Any] | None]]:
        job = {
            "trouble": trouble,
            "impl": spec.impl,
            "properties": dict(spec.properties),
            "tables": tables,
            "files": str(files),
            "folder": str(tmp_path),
            "conf": conf,
        }
        command = [sys.executable, "-m", "tests.integration.spark.faults.faulty_writes", json.dumps(job)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=280, cwd=Path(__file__).parents[4]
        )
        assert done.returncode == 0, done.stderr[-5000:]
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]

    return run


def summary(answer: dict[str, Any] | None) -> tuple[Any, ...]:
    return (answer["version"], answer["inserted"], answer["outcome"] == "done") if answer else ()


def check_rows_and_files(spec: NamespaceSpec, table: str) -> None:
    """Check that each row exists once, and that a clean-up removes the lost attempt's file."""
    with resolved_table(spec, table) as target:
        latest = target.open_latest()
        assert latest is not None
        assert sorted(latest.to_table()["id"].to_pylist()) == list(range(110))
    folder = folder_of(spec, table)
    assert {file.suffix for file in files_of(folder) - files_needed(folder)} == {".lance"}
    clean_up(spec, table)
    assert files_of(folder) == files_needed(folder)


def test_an_executor_is_lost_on_a_cluster(
    run: Run, spec: NamespaceSpec, tables: dict[str, str], cluster: str
) -> None:
    for answers in run("executor-killed", **{"spark.master": cluster, **SMALL}):
        assert [summary(answer) for answer in answers] == [(1, 100, True), (1, 100, False), (2, 10, True)]
    for table in tables.values():
        check_rows_and_files(spec, table)


@pytest.mark.long
@pytest.mark.parametrize(
    ("trouble", "first"), [("task-failed", (1, 100, True)), ("operation-interrupted", ())]
)
def test_a_task_is_lost_through_spark_connect(
    run: Run, spec: NamespaceSpec, tables: dict[str, str], server: str, trouble: str, first: tuple[Any, ...]
) -> None:
    for answers in run(trouble, **{"spark.remote": f"sc://{server}"}):
        assert [summary(answer) for answer in answers] == [first, (1, 100, not first), (2, 10, True)]
    for table in tables.values():
        check_rows_and_files(spec, table)
