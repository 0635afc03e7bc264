"""Parts of the changed rows that a task each can list, compare and read, without a shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc

from airflow_provider_lancens.spark.changes.changed_fragments import ChangedFragment, existing_fragment

if TYPE_CHECKING:
    from lance import LanceDataset

LISTED_ROWS = 4_000_000
"""Rows that a task lists, by their metadata alone."""
COMPARED_ROWS = 4_000_000
"""Rows of both versions that a task compares, in about 300 MB of memory: those of a compacted fragment."""
IMAGE_BYTES = 64 * 1024 * 1024
"""Bytes of changed rows that a task reads: starting one costs more than a few small fragments."""
_MOST_FRAGMENTS = 256
"""The driver reads the row ids of no more fragments than this, each in milliseconds."""
_LISTING_BYTES = 16
"""To list and compare a row takes about as long as to read this much of changed rows."""

_Positions = list[int]
"""Positions of fragments in the list of all that have changed."""


class Part(NamedTuple):
    """Changed rows that one task lists, compares and reads."""

    fragments: tuple[int, ...]
    """Positions of fragments in the list of all that have changed: a group."""
    share: int = 0
    """Which share of the changed rows of the group it reads."""
    shares: int = 1
    """The number of shares; the task of each lists and compares all rows of the group."""


class _Ids(NamedTuple):
    """The lowest and the highest row id of a fragment."""

    lowest: int
    highest: int
    position: int


def parts_of(
    before: LanceDataset, after: LanceDataset, fragments: Sequence[ChangedFragment]
) -> list[Part] | None:
    """Return the changed rows by groups of fragments that have no row in common with another group.

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
    if _fits(fragments):
        return _parts(fragments, everything)
    if len(fragments) > _MOST_FRAGMENTS:
        return None
    groups = _with_common_ids([_ids(before, after, one, n) for n, one in enumerate(fragments)])
    if not all(_fits([fragments[position] for position in group]) for group in groups):
        return None
    return [part for group in groups for part in _parts(fragments, group)]


def _fits(group: Sequence[ChangedFragment]) -> bool:
    listed, compared = sum(one.rows for one in group), sum(one.compared_rows for one in group)
    return listed <= LISTED_ROWS and compared <= COMPARED_ROWS


def _parts(fragments: Sequence[ChangedFragment], positions: _Positions) -> list[Part]:
    shares = _shares([fragments[position] for position in positions])
    return [Part(tuple(positions), share, shares) for share in range(shares)]


def _shares(group: Sequence[ChangedFragment]) -> int:
    """Return how many tasks read the changed rows of a group, each of which lists all of its rows."""
    if any(one.after is None for one in group) and any(one.before is None for one in group):
        return 1  # most rows may only have moved
    if any(one.compare_values for one in group):
        return 1  # each would compare all values
    listing = _LISTING_BYTES * sum(one.rows for one in group)
    changed = sum(one.changed_bytes for one in group)
    return max(1, min(-(-changed // IMAGE_BYTES), changed // max(listing, 1)))


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


def _with_common_ids(ids: Sequence[_Ids]) -> list[_Positions]:
    """Return the positions of fragments whose ranges of ids overlap, directly or through others."""
    groups: list[_Positions] = []
    highest = -1
    for one in sorted(ids):
        if groups and one.lowest <= highest:
            groups[-1].append(one.position)
        else:
            groups.append([one.position])
        highest = max(highest, one.highest)
    return groups
