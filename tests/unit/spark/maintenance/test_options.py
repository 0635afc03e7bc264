from typing import Any

import pytest

from airflow_provider_lancens.spark.maintenance import CompactionOptions


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


def test_what_is_left_open_is_left_to_lance() -> None:
    assert CompactionOptions(target_rows_per_fragment=5).as_lance() == {
        "target_rows_per_fragment": 5,
        "materialize_deletions_threshold": 0.1,
    }
