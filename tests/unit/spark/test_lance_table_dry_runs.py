"""Dry runs of a table's verbs: they say what would be done, write nothing, and need no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from airflow_provider_lancens import LanceCatalog, Table, connect
from airflow_provider_lancens.spark.results import Result

KEPT = timedelta(0)


@pytest.fixture
def lake(tmp_path: Path) -> LanceCatalog:
    return connect("dir", {"root": str(tmp_path)})


@pytest.fixture
def orders(lake: LanceCatalog, tmp_path: Path) -> Iterator[Table]:
    """A table with three versions of two rows each, which isn't changed in the test."""
    table = lake.declare_table("orders")
    for number in range(3):
        table.append(pa.table({"id": [2 * number, 2 * number + 1]}), key=f"write {number}")

    def files() -> dict[Path, int]:
        return {one: one.stat().st_mtime_ns for one in tmp_path.rglob("*") if one.is_file()}

    before = files()
    yield table
    assert files() == before


def planned(result: Result) -> tuple[str, int | None, int | None]:
    return result.outcome, result.previous_version, result.version


def test_a_deletion_counts_the_rows_and_the_fragments_that_have_them(orders: Table) -> None:
    found = orders.delete("id >= 3", dry_run=True)

    assert planned(found) == ("planned", 3, 3)
    assert (found.operation, found.deleted, found.files) == ("delete", 3, 2)
    assert orders.delete("id > 9", dry_run=True, key="none").deleted == 0


def test_a_deletion_by_an_invalid_condition_is_refused_in_a_dry_run_too(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="where"):
        orders.delete("nothing = 1", dry_run=True)


def test_a_restore_lists_the_commits_that_it_would_undo(orders: Table) -> None:
    found = orders.restore(1, dry_run=True)

    assert planned(found) == ("planned", 3, 3)
    assert found.restored_version == 1
    assert [(one.version, one.key, one.inserted) for one in found.undone] == [
        (2, "write 1", 2),
        (3, "write 2", 2),
    ]
    assert orders.restore(3, dry_run=True).undone == ()
    with pytest.raises(TableVersionNotFoundError):
        orders.restore(9, dry_run=True)


def test_a_compaction_counts_the_fragments_that_it_would_rewrite(orders: Table) -> None:
    found = orders.compact(dry_run=True)

    assert planned(found) == ("planned", 3, 3)
    assert (found.fragments_removed, found.fragments_added, found.tasks) == (3, 0, 1)
    assert found.reason == "3 fragments would be rewritten by 1 task"

    rare = orders.compact(thresholds={"min_small_fragments": 10}, dry_run=True)
    assert (rare.outcome, rare.fragments_removed) == ("planned", 0)


def test_maintenance_returns_the_steps_that_are_due(orders: Table) -> None:
    index = {"column": "id", "index_type": "BTREE"}
    found = orders.maintain(
        indices=[index],
        older_than=KEPT,
        orphans_older_than=timedelta(minutes=10),
        thresholds={"min_small_fragments": 2, "min_removable_versions": 2},
        dry_run=True,
    )

    assert planned(found) == ("planned", 3, 3)
    assert {name: step.outcome for name, step in found.steps.items()} == dict.fromkeys(
        ["compact", "index.id_idx", "expire", "orphans"], "planned"
    )
    assert found.as_dict()["steps"]["expire"]["versions"] == 2
    assert found.as_dict()["steps"]["compact"]["fragments_removed"] == 3


def test_maintenance_has_nothing_planned_for_a_step_that_is_not_due(orders: Table) -> None:
    found = orders.maintain(dry_run=True)

    assert found.outcome == "planned"
    assert {name: step.outcome for name, step in found.steps.items()} == {
        "compact": "unchanged",
        "expire": "unchanged",
    }


def test_a_table_without_data_has_nothing_to_plan(lake: LanceCatalog) -> None:
    empty = lake.declare_table("empty")

    for call in (lambda: empty.delete("TRUE", dry_run=True), lambda: empty.restore(1, dry_run=True)):
        with pytest.raises(TableVersionNotFoundError):
            call()
