"""Changes replayed onto the rows of an older version give those of a newer one, whatever was committed."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.commit.delete import delete_rows
from tests.support.changed_tables import start, upsert
from tests.support.maintained_tables import Maintained, on
from tests.support.reads import read_changes

_IDS = 60
_PLANNING = [
    import_module(f"airflow_provider_lancens.spark.changes.{name}")
    for name in ("read_changes", "changed_rows")
]
_ROWS_OF_A_TASK = (1_000_000, 40, 2)
"""All rows fit into one task, those of most groups of fragments do, or they are shuffled."""


@dataclass
class History:
    """A table that is changed at random by this package and by another client."""

    table: Maintained
    chance: random.Random
    versions: dict[int, Counter[tuple[int, str]]] = field(default_factory=dict)
    """The rows of each version that was seen."""

    def step(self) -> None:
        actions = [self.append, self.upsert, self.merge, self.update, self.delete, self.compact, self.restore]
        self.chance.choice(actions)()
        self.note()

    def note(self) -> None:
        newest = self.table.newest
        self.versions[newest.version] = rows_of(newest)

    def append(self) -> None:
        first = self.chance.randrange(1000, 10**9)
        new = pa.table({"id": [first, first + 1], "word": ["new", "new"]})
        lance.write_dataset(new, self.table.newest, mode="append")

    def upsert(self) -> None:
        upsert(self.table, dict.fromkeys(self._some(5), f"upsert {self.chance.random()}"))

    def merge(self) -> None:
        new = pa.table({"id": self._some(5), "word": [f"merge {self.chance.random()}"] * 5})
        merge = self.table.newest.merge_insert("id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(new)

    def update(self) -> None:
        word = f"'update {self.chance.random()}'"
        self.table.newest.update({"word": word}, where=f"id % 7 = {self.chance.randrange(7)}")

    def delete(self) -> None:
        some = ", ".join(map(str, range(self.chance.randrange(11), _IDS, 11)))
        delete_rows(self.table.spec, self.table.id, f"id IN ({some})")

    def compact(self) -> None:
        self.table.newest.optimize.compact_files()

    def restore(self) -> None:
        self.table.newest.checkout_version(self.chance.choice(list(self.versions))).restore()

    def _some(self, count: int) -> list[int]:
        return self.chance.sample(range(_IDS), count)


def rows_of(dataset: lance.LanceDataset) -> Counter[tuple[int, str]]:
    return Counter((row["id"], row["word"]) for row in dataset.to_table(columns=["id", "word"]).to_pylist())


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set how many rows a task compares at most, and about how many it reads."""

    def set_limit(rows: int) -> None:
        for module in _PLANNING:
            monkeypatch.setattr(module, "LISTED_ROWS", rows)
            monkeypatch.setattr(module, "COMPARED_ROWS", rows)
            monkeypatch.setattr(module, "READ_BYTES", 100 * rows)

    return set_limit


@on("stored")
@pytest.mark.parametrize(
    ("steps", "pairs"),
    [
        pytest.param(30, 8, marks=pytest.mark.thorough),  # each change plays two short histories
        pytest.param(1000, 200, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_changes_of_any_two_versions_lead_from_one_to_the_other(
    table: Maintained, limit: Callable[[int], None], steps: int, pairs: int
) -> None:
    table.spark.conf.set("spark.sql.shuffle.partitions", "2")
    start(table)
    history = History(table, random.Random(17))
    history.note()
    for _ in range(steps):
        history.step()

    seen = sorted(history.versions)
    for after, version in [*_pairs(history.chance, seen, pairs), (seen[0], seen[-1])]:
        limit(history.chance.choice(_ROWS_OF_A_TASK))
        changes = read_changes(table.spark, table.spec, table.id, after_version=after, version=version)
        replayed = history.versions[after].copy()
        for row in sorted(
            changes.collect(), key=lambda row: row["_change_type"] in ("insert", "update_postimage")
        ):
            replayed[row["id"], row["word"]] += (
                1 if row["_change_type"] in ("insert", "update_postimage") else -1
            )
            assert replayed[row["id"], row["word"]] >= 0, (after, version, row)
        assert +replayed == history.versions[version], (after, version)


def _pairs(chance: random.Random, seen: list[int], count: int) -> list[tuple[int, int]]:
    picked = [sorted(chance.sample(seen, 2)) for _ in range(count)]
    return [(after, version) for after, version in picked]
