"""Groups of changed fragments that have rows in common: one task compares their rows, without a shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from airflow_provider_lancens.spark.changes.changed_fragments import ChangedFragment, existing_fragment

if TYPE_CHECKING:
    from lance import LanceDataset

LISTED_ROWS = 4_000_000
"""Rows that a task lists, by their metadata alone."""
COMPARED_ROWS = 3_000_000
"""Rows of both versions that a task compares, in about 250 MB of memory."""
_MOST_FRAGMENTS = 256
"""The driver reads the row ids of no more fragments than this, each in milliseconds."""

Group = list[int]
"""Positions of fragments in the list of all that have changed."""


class _Ids(NamedTuple):
    """The lowest and the highest row id of a fragment."""

    lowest: int
    highest: int
    position: int


def fragment_groups(
    before: LanceDataset, after: LanceDataset, fragments: Sequence[ChangedFragment]
) -> list[Group] | None:
    """Return groups of fragments that have no row in common with those of another group.

    A compaction moves the rows of neighboring fragments to one, so that groups are small. An update by
    another client moves rows to a fragment at the end, so that it has rows in common with many.

    Args:
        before: the older version.
        after: the newer version.
        fragments: the fragments that have changed.

    Returns:
        None if there are too many fragments or a group has too many rows: those have to be shuffled.
    """
    everything = list(range(len(fragments)))
    if _fits(fragments, everything):
        return [everything]
    if len(fragments) > _MOST_FRAGMENTS:
        return None
    groups = _with_common_ids([_ids(before, after, one, n) for n, one in enumerate(fragments)])
    return groups if all(_fits(fragments, group) for group in groups) else None


def _fits(fragments: Sequence[ChangedFragment], group: Group) -> bool:
    listed = sum(fragments[position].rows for position in group)
    compared = sum(fragments[position].compared_rows for position in group)
    return listed <= LISTED_ROWS and compared <= COMPARED_ROWS


def _ids(before: LanceDataset, after: LanceDataset, fragment: ChangedFragment, position: int) -> _Ids:
    sides = ((before, fragment.before), (after, fragment.after))
    limits = [_limits(dataset, number) for dataset, number in sides if number is not None]
    found = [one for one in limits if one is not None]
    if not found:
        return _Ids(-1, -1, position)  # all of its rows are deleted
    return _Ids(min(lowest for lowest, _ in found), max(highest for _, highest in found), position)


def _limits(dataset: LanceDataset, number: int) -> tuple[int, int] | None:
    fragment = existing_fragment(dataset, number)
    ids = dataset.scanner(columns=["_rowid"], fragments=[fragment]).to_table()["_rowid"]
    limits = pc.min_max(ids).as_py()
    return None if limits["min"] is None else (limits["min"], limits["max"])


def _with_common_ids(ids: Sequence[_Ids]) -> list[Group]:
    """Return the positions of fragments whose ranges of ids overlap, directly or through others."""
    groups: list[Group] = []
    highest = -1
    for one in sorted(ids):
        if groups and one.lowest <= highest:
            groups[-1].append(one.position)
        else:
            groups.append([one.position])
        highest = max(highest, one.highest)
    return groups
