"""Counts of a fragment's rows, without Lance's own function, which stops all other threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance.fragment import LanceFragment


def matching_rows(fragment: LanceFragment, condition: str) -> int:
    """Return the number of a fragment's rows that match a condition, in Lance's SQL.

    `LanceFragment.count_rows` keeps Python's lock while it reads: leases aren't renewed meanwhile, and vended
    credentials that expire then, which Lance renews by calling Python, let it wait forever.
    """
    return int(fragment.scanner(columns=[], filter=condition, with_row_id=True).count_rows())
