"""Streams beside histories of random steps: each appended row is read once, wherever queries are stopped."""
# ruff: noqa: E402 an older PySpark is sorted out before what it can't import

import random
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from lance_namespace.errors import LanceNamespaceError

from tests.pyspark_versions import need_data_sources

need_data_sources()
pytest.importorskip("pyspark.sql.streaming.datasource", reason="PySpark 4.2 limits a stream")

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.spark import NamespaceSpec
from tests.histories import foreign_steps, own_steps, upkeep_steps
from tests.histories.checks import MismatchError
from tests.histories.history import take
from tests.histories.own_steps import Step, first_write
from tests.histories.streams import Appends, Query, declare_again
from tests.histories.table import Table
from tests.histories.values import ZONES
from tests.histories.work import Work

Make = Callable[[Path], tuple[Table, NamespaceSpec]]

_STEPS = own_steps.OWN | foreign_steps.FOREIGN | upkeep_steps.UPKEEP
_APPENDS = {
    own_steps.append: 14,
    own_steps.append_merged: 6,
    own_steps.append_files: 4,
    foreign_steps.foreign_append: 8,
}
_WEIGHTS = dict.fromkeys(_STEPS, 1) | _APPENDS
_MOST_QUERIES = 4
_PER_TEST = 25
HIVE = "airflow_provider_lancens.namespace.Hive2Namespace"


def on_dir(folder: Path) -> tuple[Table, NamespaceSpec]:
    return Table.stored(folder), NamespaceSpec("dir", {"root": str(folder / "lake")})


@dataclass
class Streams:
    """A history, and the queries that read its table."""

    work: Work
    spec: NamespaceSpec
    chance: random.Random
    counts: Counter[str]
    """How often queries ended in which way."""
    appends: Appends = field(default_factory=Appends)
    queries: list[Query] = field(default_factory=list)

    def take(self, step: Step) -> None:
        """Take a step."""
        before, state = self.work.model.newest, self.work.model.states.get(self.work.model.newest)
        take(self.work, step, self.chance.getrandbits(32))
        self.appends.note(self.work, before, state)

    def declare_again(self) -> None:
        """Drop the table, and declare another one in its place; the queries aren't started anew."""
        declare_again(self.work)
        self.appends = Appends()
        self.queries = [query for query in self.queries if query.offsets]
        for query in self.queries:
            query.is_of_former_table = True
        self.take(first_write)

    def run_queries(self) -> None:
        """Run some of the queries."""
        if not self.queries or self.chance.random() < 0.12:
            self.queries = [*self.queries[1 - _MOST_QUERIES :], self._query()]
        for number, query in enumerate(self.queries):
            if self.chance.random() < 0.5:
                ended = query.run(self.chance)
                self.work.script.append(f"# {query.options}: {ended}, at {query.offsets[-1:]}")
                self.counts[f"{ended}{', former table' * query.is_of_former_table}"] += 1
                if ended.startswith("refused"):
                    self.queries[number] = self._query()

    def _query(self) -> Query:
        return Query.draw(self.work, self.appends, self.spec, self.chance)


def play(make: Make, seeds: range, steps: int) -> Counter[str]:
    """Run histories with streams beside them; return how often queries ended in which way."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        chance, folder = random.Random(seed), Path(tempfile.mkdtemp(prefix="streams-"))
        table, spec = make(folder)
        table.set_zone(chance.choice(ZONES))
        streams = Streams(Work(table, stable=chance.random() < 0.7), spec, chance, counts)
        try:
            _play(streams, steps)
        except (LanceNamespaceError, MismatchError, OSError, ValueError) as error:
            said = "".join(traceback.format_exception(error)[-6:])
            pytest.fail("\n".join([f"seed {seed}: {said}", *streams.work.script]), pytrace=False)
        finally:
            for query in streams.queries:
                query.stop()
            shutil.rmtree(folder, ignore_errors=True)
    return counts


def _play(streams: Streams, steps: int) -> None:
    streams.take(first_write)
    for step in streams.chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=steps):
        if streams.chance.random() < 0.04:
            streams.declare_again()
        streams.take(step)
        streams.run_queries()


def test_each_appended_row_is_read_once_beside_any_other_steps() -> None:
    counts = play(on_dir, range(3), 20)
    assert min(counts["ended"], counts["killed after a micro-batch"], counts["refused (13)"]) > 0


@pytest.mark.thorough
def test_no_row_of_a_table_that_was_declared_again_is_read() -> None:
    counts = play(on_dir, range(10, 18), 30)
    assert counts["refused (19), former table"] > 5


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("start", range(1_000, 2_000, _PER_TEST))
def test_hundreds_of_histories_with_streams(start: int) -> None:
    play(on_dir, range(start, start + _PER_TEST), 30)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("start", range(2_000, 2_200, _PER_TEST))
def test_hundreds_of_histories_of_managed_tables_with_streams(
    metastore: MetastoreServer, database: str, start: int
) -> None:
    def on_hive(folder: Path) -> tuple[Table, NamespaceSpec]:
        name = f"{database}_{folder.name.replace('-', '_').lower()}"
        spec = NamespaceSpec(HIVE, {"uri": metastore.uri, "root": str(folder / "lake")})
        return Table.on_hive(folder, metastore.uri, name), spec

    play(on_hive, range(start, start + _PER_TEST), 25)
