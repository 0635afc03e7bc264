"""Lance's system columns, which every table has beside the stored ones, and the parts of a row's address."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
ROW_OFFSET = "_rowoffset"
CREATED_AT_VERSION = "_row_created_at_version"
UPDATED_AT_VERSION = "_row_last_updated_at_version"
SYSTEM_COLUMNS = frozenset([ROW_ID, ROW_ADDRESS, ROW_OFFSET, CREATED_AT_VERSION, UPDATED_AT_VERSION])

OFFSET_BITS = 32
"""The lower bits of a row's address are its offset in its fragment, the upper bits are the fragment's id."""

Addresses = TypeVar("Addresses", int, "NDArray[np.int64]")


def fragment_of(address: Addresses) -> Addresses:
    """Return the id of the fragment that a row is in, or one id for each address of an array."""
    return address >> OFFSET_BITS


def offset_of(address: Addresses) -> Addresses:
    """Return the offset of a row in its fragment, counting deleted rows, or one for each of an array."""
    return address & ((1 << OFFSET_BITS) - 1)


def first_address(fragment_id: int) -> int:
    """Return the address of a fragment's first row."""
    return fragment_id << OFFSET_BITS
