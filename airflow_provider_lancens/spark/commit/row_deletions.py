"""Rows of a dataset marked as deleted in their fragments, for an operation that commits this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset
    from lance.fragment import LanceFragment


@dataclass(frozen=True, slots=True)
class RowDeletions:
    """Fragments without some of their rows, and those that have no row left."""

    updated: list[FragmentMetadata]
    removed: list[int]
    """Ids of the fragments without rows."""
    rows: int = 0
    """The number of deleted rows."""

    @classmethod
    def where(cls, dataset: LanceDataset, condition: str) -> Self:
        """Delete the rows that match a condition; nothing refers to the deletion files before a commit.

        Args:
            dataset: the dataset, at the version to commit onto.
            condition: in Lance's SQL, as it is rendered of a parsed condition.
        """
        found = [(fragment, fragment.delete(condition)) for fragment in dataset.get_fragments()]
        changed = [(before, after) for before, after in found if _deleted_rows(before, after)]
        return cls(
            updated=[after for _, after in changed if after is not None],
            removed=[before.fragment_id for before, after in changed if after is None],
            rows=sum(_deleted_rows(before, after) for before, after in changed),
        )

    @property
    def fragments(self) -> int:
        """The number of fragments that contained the rows."""
        return len(self.updated) + len(self.removed)


def _deleted_rows(before: LanceFragment, after: FragmentMetadata | None) -> int:
    rows: int = before.metadata.num_rows
    return rows - (0 if after is None else after.num_rows)
