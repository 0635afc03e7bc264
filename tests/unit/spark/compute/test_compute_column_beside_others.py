"""A column that is computed while others commit: a column of its name that is new, and rows of others."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_namespace.errors import ConcurrentModificationError

from airflow_provider_lancens import connect
from airflow_provider_lancens.spark import ComputeResult, Table
from airflow_provider_lancens.spark.compute.column_task import ColumnFile
from airflow_provider_lancens.spark.compute.compute_column import ColumnRun
from tests.histories.local_session import LocalSession

SPARK: Any = LocalSession()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with two fragments."""
    table = connect("dir", {"root": str(tmp_path)}, spark=SPARK).declare_table("orders")
    table.append(pa.table({"id": range(4)}))
    table.append(pa.table({"id": range(4, 8)}))
    return table


@pytest.fixture
def before_the_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Call a function before the first commit of finished fragments."""

    def call(action: Callable[[], object]) -> None:
        genuine, pending = ColumnRun.commit, [action]

        def commit(run: ColumnRun, files: Collection[ColumnFile]) -> bool:
            while pending:
                pending.pop()()
            return genuine(run, files)

        monkeypatch.setattr(ColumnRun, "commit", commit)

    return call


def compute(table: Table, factor: int = 2, **named: Any) -> ComputeResult:
    return table.compute_column("n", lambda batch: pc.multiply(batch["id"], factor), ["id"], **named)


def values(table: Table) -> dict[int, int | None]:
    return {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}


Between = Callable[[Callable[[], object]], None]


@pytest.mark.parametrize("where", [None, "TRUE"])
def test_the_values_of_a_dropped_column_are_no_values_of_the_next_one_of_its_name(
    table: Table, before_the_commit: Between, where: str | None
) -> None:
    def replace_column() -> None:
        table.drop_columns(["n"])
        compute(table, 3, where="id < 0")  # the run of another function has just begun

    before_the_commit(replace_column)
    with pytest.raises(ConcurrentModificationError, match="'n' was dropped, and another one"):
        compute(table, where=where)

    assert values(table) == dict.fromkeys(range(8))
    compute(table, 3)
    assert values(table) == {number: 3 * number for number in range(8)}


def test_a_column_that_an_overwrite_keeps_is_computed(table: Table, before_the_commit: Between) -> None:
    before_the_commit(lambda: table.overwrite(pa.table({"id": [9], "n": pa.array([None], pa.int64())})))

    compute(table)

    assert values(table) == {9: 18}


def test_versions_of_others_before_the_first_commit_are_not_its_own(
    table: Table, before_the_commit: Between
) -> None:
    compute(table)
    without = pa.table({"id": [8], "n": pa.array([None], pa.int64())})
    table.append(without)
    began = table.version

    before_the_commit(lambda: [table.append(without), table.append(without)])
    result = compute(table)

    assert (result.previous_version, result.version, result.commits) == (began + 2, began + 3, 1)
