"""Changed fragments whose rows one task can compare, because no other fragment has one of them."""

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.spark.changes import changed_rows
from airflow_provider_lancens.spark.changes.changed_rows import (
    ChangedFragment,
    Compared,
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
    return changed_fragments(Compared(before, after, {"id": "id"}), commits)


@pytest.fixture
def groups(before: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> Groups:
    """Return how many older and newer fragments each group has, if a task may compare 40 rows."""
    monkeypatch.setattr(changed_rows, "COMPARED_ROWS", 40)

    def find(after: lance.LanceDataset) -> list[list[int]] | None:
        changed = changed_between(before, after)
        found = changed_rows.parts_of(before, after, changed)
        sides = ("before", "after")
        return found and [
            [sum(getattr(changed[one], side) is not None for one in part.fragments) for side in sides]
            for part in found
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
    monkeypatch.setattr(changed_rows, "IMAGE_BYTES", 100)
    after = lance.dataset(before.uri)
    after.insert(pa.table({"id": range(80, 90)}))

    [*parts] = changed_rows.parts_of(before, after, changed_between(before, after))

    assert [(part.share, part.shares) for part in parts] == [(n, len(parts)) for n in range(len(parts))]
    assert len(parts) > 1


def test_compacted_rows_are_no_changed_rows_to_share(
    before: lance.LanceDataset, groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_rows, "IMAGE_BYTES", 100)
    after = lance.dataset(before.uri)
    after.optimize.compact_files(target_rows_per_fragment=20)

    assert groups(after) == [[2, 1]] * 4
