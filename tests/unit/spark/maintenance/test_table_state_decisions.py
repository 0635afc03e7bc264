"""When a maintenance step is due, by numbers."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_THRESHOLDS,
    CompactionOptions,
    IndexSpec,
    Thresholds,
)
from airflow_provider_lancens.spark.maintenance.table_state import (
    Coverage,
    Fragmentation,
    OldVersions,
    table_state,
)
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

BITMAP = IndexSpec("day", "BITMAP")
VECTORS = IndexSpec("v", "IVF_PQ")


def fragmented(small: int = 0, deleted: int = 0) -> Fragmentation:
    return Fragmentation(fragments=20, planned=small + (deleted > 0), small=small, rows=100, deleted=deleted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_small_fragments": 0}, "min_small_fragments: expected a whole number of at least 1, got 0"),
        ({"min_small_fragments": "10"}, "min_small_fragments: .*got '10'"),
        ({"max_deleted_share": 10}, "max_deleted_share: expected a number from 0 to 1, got 10"),
        ({"max_deleted_share": float("nan")}, "max_deleted_share: .*got nan"),
        ({"max_unindexed_share": True}, "max_unindexed_share: .*got True"),
        ({"min_removable_versions": 1.5}, "min_removable_versions: expected a whole number.*got 1.5"),
        ({"max_removal_delay": 7}, "max_removal_delay: expected a timedelta of at least 0, got 7"),
        ({"max_removal_delay": timedelta(-1)}, "max_removal_delay: .*at least 0"),
    ],
)
def test_an_invalid_threshold_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        Thresholds(**given)


@pytest.mark.parametrize(
    ("found", "thresholds", "due"),
    [
        (fragmented(), {}, False),
        (fragmented(small=2), {}, True),
        (fragmented(small=9), {"min_small_fragments": 10}, False),
        (fragmented(small=10), {"min_small_fragments": 10}, True),
        (fragmented(deleted=100), {"min_small_fragments": 10}, False),
        (fragmented(deleted=100), {"max_deleted_share": 0.5}, False),
        (fragmented(deleted=101), {"max_deleted_share": 0.5}, True),
        (fragmented(small=9, deleted=101), {"min_small_fragments": 10, "max_deleted_share": 0.5}, True),
        (Fragmentation(fragments=20, planned=0, small=0, rows=1, deleted=9), {"max_deleted_share": 0}, False),
        (Fragmentation(fragments=0, planned=0, small=0, rows=0, deleted=0), {"max_deleted_share": 0}, False),
    ],
)
def test_small_fragments_or_deleted_rows_make_a_compaction_pay(
    found: Fragmentation, thresholds: dict[str, Any], due: bool
) -> None:
    assert found.decide(Thresholds(**thresholds)).is_due is due


def test_a_decision_names_what_was_found_and_its_thresholds() -> None:
    decision = fragmented(small=3, deleted=25).decide(DEFAULT_THRESHOLDS)

    assert decision.reason == (
        "3 of 20 fragments are small and can be merged (min_small_fragments=10), "
        "20.0% of the rows are deleted (max_deleted_share=0.1)"
    )


@pytest.mark.parametrize(
    ("found", "share", "due", "reason"),
    [
        (Coverage(BITMAP, rows=0), 0.1, False, "the table has no rows"),
        (Coverage(BITMAP, rows=9), 1, True, "the index does not exist"),
        (Coverage(BITMAP, 9, "BTree", indexed=9), 1, True, "the index is BTree, not BITMAP"),
        (Coverage(BITMAP, 9, "Bitmap", indexed=9), None, False, "0.0% of 9 rows are not indexed"),
        (Coverage(BITMAP, 9, "Bitmap", indexed=8), None, True, "11.1% of 9 rows are not indexed"),
        (
            Coverage(BITMAP, 1000, "Bitmap", indexed=900),
            0.1,
            False,
            "10.0% of 1,000 rows are not indexed (max_unindexed_share=0.1)",
        ),
        (
            Coverage(VECTORS, 1000, "IVF_PQ", indexed=899),
            0.1,
            True,
            "10.1% of 1,000 rows are not indexed (max_unindexed_share=0.1)",
        ),
    ],
)
def test_an_index_is_due_if_it_is_missing_or_lacks_too_many_rows(
    found: Coverage, share: float | None, due: bool, reason: str
) -> None:
    decision = found.decide(Thresholds(max_unindexed_share=share))

    assert (decision.is_due, decision.reason) == (due, reason)


@pytest.mark.parametrize("spec", [BITMAP, VECTORS])
def test_after_a_compaction_an_index_covers_all_rows(spec: IndexSpec) -> None:
    found = Coverage(spec, 1000, spec.index_type, indexed=999)

    assert found.decide_after_compaction(DEFAULT_THRESHOLDS).is_due is True
    assert found.decide(DEFAULT_THRESHOLDS).is_due is False


@pytest.mark.parametrize(
    ("found", "thresholds", "due"),
    [
        (OldVersions(0), {}, False),
        (OldVersions(1), {}, True),
        (OldVersions(19), {"min_removable_versions": 20}, False),
        (OldVersions(20), {"min_removable_versions": 20}, True),
        (OldVersions(1, timedelta(days=6)), {"max_removal_delay": timedelta(days=7)}, False),
        (OldVersions(1, timedelta(days=7)), {"max_removal_delay": timedelta(days=7)}, True),
        (OldVersions(0), {"max_removal_delay": timedelta(0)}, False),
    ],
)
def test_many_old_versions_or_a_very_old_one_make_a_clean_up_pay(
    found: OldVersions, thresholds: dict[str, Any], due: bool
) -> None:
    assert found.decide(Thresholds(**thresholds)).is_due is due


def test_many_fragments_are_planned_only_if_a_compaction_may_be_due(tmp_path: Path) -> None:
    fragments = 1001
    rows, location = pa.table({"n": range(fragments)}), str(tmp_path / "orders.lance")
    dataset = lance.write_dataset(rows, location, max_rows_per_file=1)

    def reason(least: int) -> tuple[bool, str]:
        thresholds = Thresholds(min_small_fragments=least)
        with table_state(NamespaceSpec("dir", {"root": str(tmp_path)}), "orders") as state:
            decision = state.decide_compaction(CompactionOptions(), thresholds)
        return decision.is_due, decision.reason.partition(" are small")[0]

    assert reason(fragments + 1) == (False, "at most 1001 of 1001 fragments")
    assert reason(fragments) == (True, "1001 of 1001 fragments")
    dataset.delete("n = 0")
    assert reason(fragments) == (False, "1000 of 1000 fragments")
