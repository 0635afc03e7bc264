"""Which rows an index covers, by the metadata of real datasets."""

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.table.index_coverage import covers


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """Two fragments at version 1, with an index over both at version 2, and a third one at version 3."""
    table = pa.table({"id": range(20)})
    dataset = lance.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=10)
    dataset.create_scalar_index("id", "BTREE", name="ids")
    return append(dataset)


def append(dataset: lance.LanceDataset) -> lance.LanceDataset:
    return lance.write_dataset(pa.table({"id": range(100, 110)}), dataset.uri, mode="append")


def extend(dataset: lance.LanceDataset) -> lance.LanceDataset:
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    return lance.dataset(dataset.uri)


def test_rows_that_were_appended_later_need_not_be_indexed(dataset: lance.LanceDataset) -> None:
    assert [covers(dataset, "ids", version) for version in (1, 2, 3)] == [True, True, False]
    assert covers(append(extend(dataset)), "ids", 3)


def test_an_index_that_does_not_exist_covers_nothing(dataset: lance.LanceDataset) -> None:
    assert not covers(dataset, "other", 1)
    assert not covers(dataset.checkout_version(1), "ids", 1)


def test_rows_are_followed_through_a_compaction(dataset: lance.LanceDataset) -> None:
    append(dataset).optimize.compact_files()
    compacted = append(lance.dataset(dataset.uri))

    assert not covers(compacted, "ids", 3)
    assert covers(append(extend(compacted)), "ids", 3)


def test_all_rows_must_be_indexed_if_the_version_was_cleaned_up(dataset: lance.LanceDataset) -> None:
    dataset.cleanup_old_versions(timedelta(0))

    assert not covers(dataset, "ids", 1)
    assert covers(extend(dataset), "ids", 1)


def test_rewritten_rows_of_a_version_must_be_indexed(dataset: lance.LanceDataset) -> None:
    dataset.delete("id = 3")
    assert covers(dataset, "ids", 2)

    overwritten = lance.write_dataset(pa.table({"id": range(5)}), dataset.uri, mode="overwrite")
    assert not covers(overwritten, "ids", overwritten.version)
