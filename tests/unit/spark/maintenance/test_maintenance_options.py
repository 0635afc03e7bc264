from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_lancens.spark.maintenance import CompactionOptions
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    SHORTEST_ORPHAN_AGE,
    IndexSpec,
    MaintenancePlan,
)
from airflow_provider_lancens.spark.maintenance.orphans import SHORTEST


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_rows_per_fragment": 0}, "target_rows_per_fragment: .*at least 1, got 0"),
        ({"max_source_bytes": 1.5}, "max_source_bytes: .*whole number.*got 1.5"),
        ({"num_threads": True}, "num_threads: .*got True"),
        ({"materialize_deletions_threshold": 2}, "materialize_deletions_threshold: .*from 0 to 1, got 2"),
    ],
)
def test_an_option_out_of_range_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CompactionOptions(**options)


def test_unset_options_are_left_to_lance() -> None:
    assert CompactionOptions(target_rows_per_fragment=5).as_lance() == {
        "target_rows_per_fragment": 5,
        "materialize_deletions_threshold": 0.1,
    }


@pytest.mark.parametrize(
    ("index_type", "options", "message"),
    [
        ("TREE", {}, "index_type: expected one of BTREE, BITMAP.*, got 'TREE'"),
        ("BTREE", {"metric": "l2"}, r"options\['metric'\]: not an option of BTREE; expected none"),
        ("IVF_FLAT", {"num_bits": 8}, "not an option of IVF_FLAT; expected metric, num_partitions"),
        ("IVF_FLAT", {"metric": "far"}, r"options\['metric'\]: expected one of l2, cosine, dot.*, got 'far'"),
        ("IVF_HNSW_PQ", {"m": 0}, r"options\['m'\]: .*at least 1"),
        ("IVF_PQ", {"num_bits": 5}, r"options\['num_bits'\]: expected one of 8, 4, got 5"),
    ],
)
def test_an_invalid_index_type_is_reported_with_the_allowed_ones(
    index_type: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        IndexSpec("v", index_type, options=options)


def test_the_default_index_name_is_made_of_its_columns() -> None:
    assert IndexSpec("v", "ivf_pq").name == "v_idx"
    assert IndexSpec("v", "ivf_pq", "mine").name == "mine"


def test_a_plan_refuses_an_age_of_orphans_that_their_removal_would_refuse() -> None:
    with pytest.raises(ValueError, match="orphans_older_than: expected at least 0:10:00"):
        MaintenancePlan(orphans_older_than=SHORTEST - timedelta(seconds=1))

    assert MaintenancePlan(orphans_older_than=SHORTEST).orphans_older_than == SHORTEST_ORPHAN_AGE
