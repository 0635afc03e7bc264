"""Lance's ids of columns and nested fields, and when an id changes its meaning.

A data file names its columns by field ids. A version may give an id to another column: an overwrite numbers
all columns again, and after a restore, or a compaction without a dropped column, new columns get ids that
others had before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.table.history import transactions_of

if TYPE_CHECKING:
    from lance import LanceDataset

_RENUMBERING = ({"Overwrite"}, {"Restore"}, {"Project", "Rewrite", "Merge"})
"""Operations that together can give a column the field id of one that was dropped."""


class IdStability(Enum):
    """Whether a field id means the same column in two versions."""

    STABLE = auto()
    UNKNOWN = auto()
    """A version in between was cleaned up, or wasn't looked at."""
    RENUMBERED = auto()


def id_stability(newest: LanceDataset, after: int) -> IdStability:
    """Return whether field ids mean the same in a version and an older one, from the commits in between."""
    found = [transaction for _, transaction in transactions_of(newest, after)]
    kinds = {type(one.operation).__name__ for one in found if one is not None}
    if any(operations <= kinds for operations in _RENUMBERING):
        return IdStability.RENUMBERED
    return IdStability.UNKNOWN if None in found else IdStability.STABLE


def field_ids(fields: Iterable[Any]) -> set[int]:
    """Return the ids of these fields of a Lance schema, and of all fields in them."""
    return {number for one in fields for number in (one.id(), *field_ids(one.children()))}


def described_fields(fields: Iterable[Any]) -> Mapping[int, str]:
    """Return the path and type of each of these fields of a Lance schema and of all fields in them, by id."""
    return dict(_described(fields, ()))


def _described(fields: Iterable[Any], path: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    for one in fields:
        here, children = (*path, one.name()), list(one.children())
        # The types of nested fields are described with them.
        yield one.id(), f"{here}: {'nested' if children else one.to_arrow().type}"
        yield from _described(children, here)
