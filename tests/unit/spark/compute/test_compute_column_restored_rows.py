"""Rows that a restore brings back while a column is computed keep their values, or get some."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens import connect
from airflow_provider_lancens.spark import ComputeResult, Table
from airflow_provider_lancens.spark.compute.column_task import ColumnFile
from airflow_provider_lancens.spark.compute.compute_column import ColumnRun, is_marked
from tests.histories.local_session import LocalSession

SPARK: Any = LocalSession()


@pytest.fixture(params=[False, True], ids=["addresses", "stable_ids"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A table with two fragments, whose last row alone has a value of `n`."""
    table = connect("dir", {"root": str(tmp_path)}, spark=SPARK).declare_table("orders")
    for first, value in ((0, None), (4, 70)):
        rows = pa.table({"id": range(first, first + 4), "n": pa.array([None, None, None, value], pa.int64())})
        mode: Any = "append" if first else "create"
        lance.write_dataset(rows, table.location, mode=mode, enable_stable_row_ids=request.param)
    return table


@contextmanager
def before_the_commit(action: Callable[[], object], number: int = 0) -> Iterator[list[int]]:
    """Call a function before one of the commits of finished fragments; yield these."""
    genuine, commits, computed = ColumnRun.commit, count(), list[int]()

    def commit(run: ColumnRun, files: Collection[ColumnFile]) -> bool:
        computed.extend(file.fragment for file in files)
        if next(commits) == number:
            action()
        return genuine(run, files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnRun, "commit", commit)
        yield computed
    assert next(commits) > number


def compute(table: Table, factor: int = 2, **named: Any) -> ComputeResult:
    return table.compute_column("n", lambda batch: pc.multiply(batch["id"], factor), ["id"], **named)


def values(table: Table) -> dict[int, int | None]:
    return {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}


def test_a_row_that_a_restore_brings_back_keeps_its_value(table: Table) -> None:
    whole = table.version
    table.delete("id = 7")

    with before_the_commit(lambda: table.restore(whole)):
        compute(table)

    assert values(table) == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8, 5: 10, 6: 12, 7: 70}
    assert compute(table).outcome == "unchanged"


def test_a_row_that_a_restore_brings_back_is_computed(table: Table) -> None:
    whole = table.version
    table.delete("id IN (1, 5)")

    with before_the_commit(lambda: table.restore(whole)) as computed:
        result = compute(table, commit_every=1, max_tasks=1)

    assert values(table) == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8, 5: 10, 6: 12, 7: 70}
    assert (result.computed, result.nulls, computed) == (7, 0, [0, 1, 0, 1])
    assert compute(table).outcome == "unchanged"


def test_rows_that_a_recomputation_leaves_keep_their_values(table: Table) -> None:
    whole = table.version
    table.delete("id = 7")

    with before_the_commit(lambda: table.restore(whole)):
        compute(table, where="id < 6")

    assert values(table) == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8, 5: 10, 6: None, 7: 70}


def test_values_that_a_restore_has_undone_are_computed_again(table: Table) -> None:
    compute(table, where="id < 0")  # only marks the column
    before = table.version

    with before_the_commit(lambda: table.restore(before), number=1) as computed:
        result = compute(table, 3, where="TRUE", commit_every=1, max_tasks=1)

    assert computed == [0, 1, 0]
    assert (result.computed, result.files, result.commits) == (8, 2, 3)
    assert values(table) == {number: 3 * number for number in range(8)}


def test_a_mark_that_a_restore_has_undone_is_set_again(table: Table) -> None:
    before = table.version

    with before_the_commit(lambda: table.restore(before)):
        compute(table, where="id < 4")

    assert is_marked(table.dataset(), "n")
    assert values(table) == {0: 0, 1: 2, 2: 4, 3: 6, 4: None, 5: None, 6: None, 7: 70}


def test_a_restore_that_undoes_the_column_is_a_conflict(table: Table) -> None:
    before = table.version

    with (
        pytest.raises(ConcurrentModificationError, match="changed column 'm'"),
        before_the_commit(lambda: table.restore(before)),
    ):
        table.compute_column("m", lambda batch: batch["id"], ["id"])

    assert table.to_arrow().column_names == ["id", "n"]


def test_deletions_alone_preempt_nothing(table: Table) -> None:
    compute(table)
    table.delete("id IN (1, 5)")
    before = table.version

    def delete_and_restore() -> None:
        table.delete("id = 3")
        table.restore(before)

    with before_the_commit(delete_and_restore) as first:
        compute(table, 3, where="id < 4")
    with before_the_commit(lambda: table.delete("id IN (2, 6)")) as second:
        compute(table, 3, where="TRUE")

    assert (sorted(first), sorted(second)) == ([0], [0, 1])
    assert values(table) == {0: 0, 3: 9, 4: 12, 7: 21}
    lance.dataset(table.location).validate()
