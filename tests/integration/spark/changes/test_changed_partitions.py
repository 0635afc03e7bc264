"""Changed fragments whose rows one task can compare, because no other fragment has one of them."""

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.changes import changed_rows
from airflow_provider_lancens.spark.changes.changed_rows import (
    ChangedFragment,
    ComparedVersions,
    changed_fragments,
)
from airflow_provider_lancens.spark.table.history import transactions_of

Groups = Callable[[lance.LanceDataset], list[list[int]] | None]


@pytest.fixture
def before(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    """Eight fragments of ten rows."""
    rows = pa.table({"id": range(80)})
    path = str(tmp_path_factory.mktemp("groups") / "t.lance")
    return lance.write_dataset(rows, path, max_rows_per_file=10, enable_stable_row_ids=True)


def changed_between(before: lance.LanceDataset, after: lance.LanceDataset) -> list[ChangedFragment]:
    commits = transactions_of(after, before.version)
    return changed_fragments(ComparedVersions(before, after, {"id": "id"}), commits)


@pytest.fixture
def groups(before: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> Groups:
    """Return how many older and newer fragments each group has, if a task may compare 40 rows."""
    monkeypatch.setattr(changed_rows, "COMPARED_ROWS", 40)

    def find(after: lance.LanceDataset) -> list[list[int]] | None:
        changed = changed_between(before, after)
        found = changed_rows.partitions_of(before, after, changed)
        sides = ("before", "after")
        return found and [
            [sum(getattr(changed[one], side) is not None for one in partition.fragments) for side in sides]
            for partition in found
        ]

    return find


def test_few_rows_are_one_group(before: lance.LanceDataset, groups: Groups) -> None:
    after = lance.dataset(before.uri)
    after.delete("id % 4 = 0")
    assert groups(after) == [[8, 8]]


def test_compacted_fragments_are_grouped_with_those_that_they_replace(
    before: lance.LanceDataset, groups: Groups
) -> None:
    after = lance.dataset(before.uri)
    after.optimize.compact_files(target_rows_per_fragment=20)
    assert groups(after) == [[2, 1]] * 4


def test_rows_that_moved_from_many_fragments_to_one_are_shuffled(
    before: lance.LanceDataset, groups: Groups
) -> None:
    after = lance.dataset(before.uri)
    after.optimize.compact_files(target_rows_per_fragment=80)
    assert groups(after) is None


def test_many_changed_rows_are_read_in_shares(
    before: lance.LanceDataset, groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_rows, "READ_BYTES", 100)
    after = lance.dataset(before.uri)
    after.insert(pa.table({"id": range(80, 90)}))

    [*partitions] = changed_rows.partitions_of(before, after, changed_between(before, after))

    assert [(partition.share, partition.shares) for partition in partitions] == [
        (n, len(partitions)) for n in range(len(partitions))
    ]
    assert len(partitions) > 1


def test_compacted_rows_are_no_changed_rows_to_share(
    before: lance.LanceDataset, groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_rows, "READ_BYTES", 100)
    after = lance.dataset(before.uri)
    after.optimize.compact_files(target_rows_per_fragment=20)

    assert groups(after) == [[2, 1]] * 4
