"""The matrix of `docs/concurrent-writers.md`: what becomes of a task if another one commits before it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.optimize import Compaction
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens import connect
from airflow_provider_lancens.namespace.lance_errors import is_conflict
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits
from airflow_provider_lancens.spark.lance_table import Table
from tests.histories.local_session import LocalSession
from tests.support.repository import ROOT

Meanwhile = Callable[[], object]
Task = Callable[[Table, Meanwhile], object]

SPARK: Any = LocalSession()
PAGE = ROOT / "docs" / "concurrent-writers.md"
WITH_SPARK = {"upsert that compares rows"}
"""Rows of tasks that need Spark, which other tests have."""


COMMITS = ((Committer, "commit"), (SchemaCommits, "_commit"))


def orders(first: int, last: int, day: int, n: int = 0) -> pa.Table:
    count = last - first
    return pa.table({"id": range(first, last), "day": [day] * count, "n": [n] * count})


def compact(table: Table, meanwhile: Meanwhile) -> None:
    """Compact as `Table.compact` does: the plan and the rewriting before, the commit after the other task."""
    dataset = lance.dataset(table.location)
    tasks = Compaction.plan(dataset, {"target_rows_per_fragment": 1000}).tasks
    rewritten = [task.execute(dataset) for task in tasks]
    meanwhile()
    Compaction.commit(dataset, rewritten)


def index(table: Table, meanwhile: Meanwhile) -> None:
    dataset = lance.dataset(table.location)
    meanwhile()
    dataset.create_scalar_index("id", "BTREE", name="id_idx")


def committed(change: Callable[[Table], object], by: Sequence[tuple[type, str]] = COMMITS) -> Task:
    """A task that commits by one of these functions; the other one commits right before it."""

    def run(table: Table, meanwhile: Meanwhile) -> None:
        calls = iter([meanwhile])

        def after(genuine: Callable[..., object]) -> Callable[..., object]:
            def commit(*arguments: object, **named: object) -> object:
                next(calls, lambda: None)()
                return genuine(*arguments, **named)

            return commit

        with pytest.MonkeyPatch.context() as patch:
            for owner, name in by:
                patch.setattr(owner, name, after(getattr(owner, name)))
            change(table)

    return run


def added_one(batch: pa.RecordBatch) -> pa.Array:
    return pc.add(batch["n"], 1)


TASKS: dict[str, Task] = {
    "append": committed(lambda table: table.append(orders(100, 102, day=1))),
    "overwrite of all rows": committed(lambda table: table.overwrite(orders(200, 202, day=1))),
    "overwrite `where` or `on`": committed(
        lambda table: table.overwrite(orders(300, 302, day=1), where="day = 1")
    ),
    "upsert": committed(lambda table: table.upsert(orders(3, 5, day=1, n=1), on=["id"])),
    "delete": committed(lambda table: table.delete("id < 4")),
    "restore": committed(lambda table: table.restore(2)),
    "compaction": compact,
    "index": index,
    "change of columns": committed(lambda table: table.add_columns({"added": "int"})),
    "computed column": committed(
        lambda table: table.compute_column("n", added_one, ["n"], where="TRUE"), by=COMMITS[:1]
    ),
}
MEANWHILE = {**TASKS, "overwrite `where` or `on`, upsert": TASKS["upsert"]}
"""The tasks that commit meanwhile; each changes rows and fragments that the others change, too."""


def matrix() -> dict[tuple[str, str], str]:
    """Each cell of the page, without its notes, by the running task and what is committed meanwhile."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    start = next(number for number, line in enumerate(lines) if "committed meanwhile" in line)
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:])
    return {
        (row[0].partition(" [")[0], other): re.sub(r"\*| \[\d+\]", "", cell)
        for row in rows
        if len(row) == len(header)
        for other, cell in zip(header[1:], row[1:], strict=True)
    }


CELLS = {tasks: cell for tasks, cell in matrix().items() if tasks[0] not in WITH_SPARK}


def test_the_page_has_a_row_for_each_task() -> None:
    assert {task for task, _ in matrix()} == {*TASKS, *WITH_SPARK}
    assert set(CELLS.values()) == {"✓", "14", "rows", "files"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table: two days, a deletion of the first day's rows, and a column that is computed."""
    folder = tmp_path_factory.mktemp("lake")
    lake = connect("dir", {"root": str(folder)}, spark=SPARK)
    lake.declare_table("orders")
    table = lake.table("orders")
    table.append(orders(0, 20, day=1))
    table.append(orders(20, 40, day=2))
    table.delete("id < 2")
    table.compute_column("n", added_one, ["n"], where="id < 0")
    return folder


@pytest.mark.parametrize(("running", "other"), list(CELLS))
def test_a_task_beside_another_one(running: str, other: str, template: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(template, tmp_path / "lake")
    table = connect("dir", {"root": str(folder)}, spark=SPARK).table("orders")
    done: list[str] = []

    def meanwhile() -> None:
        MEANWHILE[other](table, lambda: None)
        done.append(other)

    is_refused = False
    try:
        TASKS[running](table, meanwhile)
    except (ConcurrentModificationError, OSError) as error:
        is_refused = isinstance(error, ConcurrentModificationError) or is_conflict(error)
        if not is_refused:
            raise

    assert done == [other]
    assert is_refused == (CELLS[running, other] != "✓")
