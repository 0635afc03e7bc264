"""What a table of many fragments costs: appends, and the decision whether a compaction is due."""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.optimize import Compaction

from airflow_provider_lancens.spark import NamespaceSpec, connect
from airflow_provider_lancens.spark.maintenance import CompactionOptions, Thresholds
from airflow_provider_lancens.spark.maintenance.table_state import table_state
from tests.benchmarks.figures import Figure
from tests.benchmarks.timing import interleaved, timed
from tests.old_table import ROW

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

FRAGMENTS = [10, 100, 1000, 10_000]
ROUNDS = 7
OURS, PEERS = ("append", "decide"), ("append by pylance", "plan by pylance")


def test_fragments(tmp_path: Path, show: Callable[..., None]) -> None:
    figure = Figure("fragments", axis="fragments")
    for fragments in FRAGMENTS:
        works = steps(tmp_path / str(fragments), fragments)
        times = interleaved(ROUNDS, {name: timed(work) for name, work in works.items()}, warm_up=1)
        show(f"{fragments:,} fragments", times)
        figure.add_times(fragments, times, *zip(OURS, PEERS, strict=True))
    figure.save()

    decided = figure.medians("seconds", "decide")
    assert decided[FRAGMENTS[-1]] <= 10, "a decision reads more than the metadata of the fragments"


def steps(root: Path, fragments: int) -> Mapping[str, Callable[[], object]]:
    """The steps of this package, each with its counterpart by pylance alone."""
    spec, location = NamespaceSpec("dir", {"root": str(root)}), str(root / "orders.lance")
    lance.write_dataset(pa.table({"n": range(fragments)}), location, max_rows_per_file=1)
    orders, keys = connect("dir", {"root": str(root)}).table("orders"), itertools.count()
    thresholds = Thresholds(min_small_fragments=10 * FRAGMENTS[-1])

    def append() -> None:
        assert orders.append(ROW, key=f"append {next(keys)}").inserted == 1

    def decide() -> None:
        with table_state(spec, "orders") as state:
            assert not state.decide_compaction(CompactionOptions(), thresholds).is_due

    def append_by_pylance() -> None:
        lance.write_dataset(ROW, location, mode="append")

    def plan_by_pylance() -> None:
        assert Compaction.plan(lance.dataset(location), {}).num_tasks()

    return dict(zip((*OURS, *PEERS), (append, decide, append_by_pylance, plan_by_pylance), strict=True))
