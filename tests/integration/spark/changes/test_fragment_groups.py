"""Changed fragments whose rows one task can compare, because no other fragment has one of them."""

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.changes import fragment_groups
from airflow_provider_lancens.spark.changes.changed_fragments import changed_fragments
from airflow_provider_lancens.spark.changes.columns_at import ids_of

Groups = Callable[[lance.LanceDataset], list[list[int]] | None]


@pytest.fixture
def before(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    """Eight fragments of ten rows."""
    rows = pa.table({"id": range(80)})
    path = str(tmp_path_factory.mktemp("groups") / "t.lance")
    return lance.write_dataset(rows, path, max_rows_per_file=10, enable_stable_row_ids=True)


@pytest.fixture
def groups(before: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> Groups:
    """Return how many older and newer fragments each group has, if a task may compare 40 rows."""
    monkeypatch.setattr(fragment_groups, "COMPARED_ROWS", 40)

    def find(after: lance.LanceDataset) -> list[list[int]] | None:
        changed = changed_fragments(before, after, ids_of(after, ["id"]))
        found = fragment_groups.fragment_groups(before, after, changed)
        sides = ("before", "after")
        return found and [
            [sum(getattr(changed[one], side) is not None for one in group) for side in sides]
            for group in found
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
