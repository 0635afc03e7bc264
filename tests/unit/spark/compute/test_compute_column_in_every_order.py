"""A column that is computed beside other writers, in random orders: no value is lost, or gets to another row.

After each order, one more run leaves no row without a value: none is taken for computed that isn't.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.optimize import Compaction
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError, InvalidTableStateError

from airflow_provider_lancens import connect
from airflow_provider_lancens.spark import Table, WriteIdentity
from airflow_provider_lancens.spark.compute.column_task import ColumnFile
from airflow_provider_lancens.spark.compute.compute_column import ColumnRun
from tests.histories.local_session import LocalSession

SPARK: Any = LocalSession()
STEPS = 14
REFUSALS = (ConcurrentModificationError, InvalidInputError, InvalidTableStateError)
"""Of a redo whose rows were changed, and of a staged version that was published or no longer fits."""


@dataclass(frozen=True)
class Row:
    """A row by its `id`: a number that no other row has ever had, and its computed value."""

    unique: int
    value: int | None = None


Rows: TypeAlias = dict[int, Row]


@dataclass
class Computed:
    """A table beside what it must contain."""

    table: Table
    chance: random.Random
    rows: Rows = field(default_factory=dict)
    versions: dict[int, Rows] = field(default_factory=dict)
    staged: list[tuple[int, Rows]] = field(default_factory=list)
    keyed: Rows = field(default_factory=dict)
    """What the append under the key has written last."""
    unique: int = 0

    def new(self, ids: Collection[int]) -> Rows:
        found = {}
        for number in ids:
            self.unique += 1
            found[number] = Row(self.unique)
        return found

    def new_ids(self) -> range:
        return range(self.unique * 100, self.unique * 100 + self.chance.randrange(1, 6))

    def some(self) -> list[int]:
        """Some ids of the table."""
        return [number for number in self.rows if self.chance.random() < self.chance.choice((0.1, 0.4))]

    def note(self) -> None:
        self.versions[self.table.version] = dict(self.rows)

    # Steps, each of which changes both.

    def append(self) -> None:
        added = self.new(self.new_ids())
        self.table.append(arrow(added))
        self.rows |= added

    def redo(self) -> None:
        added = self.new(self.new_ids())
        execution = f"execution-{self.unique}"
        try:
            self.table.append(arrow(added), key=WriteIdentity("key", execution, "redo", execution))
        except REFUSALS:
            return
        self.rows = {number: row for number, row in self.rows.items() if number not in self.keyed} | added
        self.keyed = added

    def stage(self) -> None:
        added = self.new(self.new_ids())
        staged = self.table.append(arrow(added), stage=True, key=f"staged-{self.unique}").staged_version
        assert staged is not None
        self.staged.append((staged, added))

    def publish(self) -> None:
        if not self.staged:
            return
        version, added = self.chance.choice(self.staged)
        try:
            done = self.table.publish(version)
        except REFUSALS:
            return
        if done.outcome == "done":
            self.rows |= added

    def delete(self) -> None:
        gone = self.some()
        if gone:
            self.table.delete(f"id IN ({', '.join(map(str, gone))})")
            self.rows = {number: row for number, row in self.rows.items() if number not in gone}

    def upsert(self) -> None:
        changed = self.new([*self.some(), *self.new_ids()])
        self.table.upsert(arrow(changed), on=["id"])
        self.rows |= changed

    def restore(self) -> None:
        recent = self.chance.choice((2, 4, len(self.versions)))
        version = self.chance.choice(sorted(self.versions)[-recent:])
        self.table.restore(version)
        self.rows = dict(self.versions[version])

    def compact(self) -> None:
        dataset = lance.dataset(self.table.location)
        tasks = Compaction.plan(dataset, {"target_rows_per_fragment": self.chance.choice((4, 1000))}).tasks
        Compaction.commit(dataset, [task.execute(dataset) for task in tasks])

    OTHERS = (append, redo, stage, publish, delete, upsert, compact)

    # Computations, beside one of them.

    def fill(self) -> None:
        self.compute(lambda row: row.value is None, 10, where=None)

    def recompute(self) -> None:
        bound = self.chance.randrange(1, self.unique + 2)
        self.compute(lambda row: row.unique < bound, self.unique + 11, where=f"m < {bound}")

    def compute(self, is_chosen: Callable[[Row], bool], factor: int, where: str | None) -> None:
        before = dict(self.rows)
        commit_every = self.chance.choice((None, 1))
        with self.interrupted(self.chance.randrange(3)):
            self.table.compute_column(
                *("n", lambda batch: pc.multiply(batch["m"], factor), ["m"]),
                where=where,
                commit_every=commit_every,
                max_tasks=self.chance.choice((1, 4)),
            )
        found = stored(self.table)
        for number, row in self.rows.items():
            computed = replace(row, value=factor * row.unique)
            allowed = [row]
            if is_chosen(row):  # else it keeps its value; one that others have written meanwhile may have one
                same = before.get(number)
                was_there = same is not None and same.unique == row.unique and is_chosen(same)
                allowed = [computed] if was_there else [row, computed]
            assert found.get(number) in allowed, (number, row, found.get(number))
        assert found.keys() == self.rows.keys()
        self.rows = found

    @contextmanager
    def interrupted(self, commits: int) -> Iterator[None]:
        """Let another step commit before one of the commits of a computation."""
        genuine, calls = ColumnRun.commit, iter(range(commits + 1))

        def commit(run: ColumnRun, files: Collection[ColumnFile]) -> bool:
            if next(calls, None) == commits:
                self.chance.choice((Computed.restore, self.chance.choice(self.OTHERS)))(self)
            return genuine(run, files)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ColumnRun, "commit", commit)
            yield


def arrow(rows: Rows) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "m": pa.array([row.unique for row in rows.values()], pa.int64()),
            "n": pa.array([row.value for row in rows.values()], pa.int64()),
        }
    )


def stored(table: Table) -> Rows:
    found = table.to_arrow().to_pylist()
    rows = {row["id"]: Row(row["m"], row["n"]) for row in found}
    assert len(rows) == len(found)
    return rows


@pytest.mark.parametrize("stable_row_ids", [False, True], ids=["addresses", "stable_ids"])
@pytest.mark.parametrize("seed", range(6))
def test_no_value_is_lost_or_mixed(seed: int, stable_row_ids: bool, tmp_path: Path) -> None:
    chance = random.Random(2 * seed + stable_row_ids)
    table = connect("dir", {"root": str(tmp_path)}, spark=SPARK).declare_table("orders")
    computed = Computed(table, chance)
    computed.rows = computed.new(range(-20, 0))
    lance.write_dataset(
        arrow(computed.rows), table.location, enable_stable_row_ids=stable_row_ids, max_rows_per_file=7
    )
    steps = (Computed.fill, Computed.recompute, Computed.delete, Computed.restore)
    for _ in range(STEPS):
        computed.note()
        step = chance.choice((*steps, chance.choice(Computed.OTHERS)))
        step(computed)
        assert stored(table) == computed.rows, step.__name__

    table.compute_column("n", lambda batch: pc.multiply(batch["m"], 10), ["m"])

    expected = {
        number: row if row.value is not None else replace(row, value=10 * row.unique)
        for number, row in computed.rows.items()
    }
    assert stored(table) == expected
    lance.dataset(table.location).validate()
