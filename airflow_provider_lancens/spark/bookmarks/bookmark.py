"""A bookmark, and how a Lance tag says that it is one. Plain data: loads quickly, since DAGs load it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from airflow_provider_lancens.spark.options import LONGEST_EXPIRY, MILLISECOND

_KIND, _BOOKMARK = "lancens.kind", "bookmark"
_EXPIRES_AFTER = "lancens.expires_after_millis"
"""Keys of a tag's metadata."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Up to which version a consumer has read a table."""

    name: str
    version: int
    """The version that it names and keeps; of an expired one, the version that it had, 0 if that was lost."""
    behind: int
    """How many versions of the table follow this one."""
    moved_at: datetime | None
    """When it was last moved, in UTC, by the clock of who moved it; None if the tag doesn't say."""
    expires_at: datetime | None
    """When it expires unless it is moved, in UTC; None if it never does, or names the newest version."""
    expired_at: datetime | None = None
    """When a clean-up found it expired, in UTC, and ceased to keep its version; None if it is live."""

    @property
    def is_expired(self) -> bool:
        """Whether its version isn't kept any more, so that changes after it may be lost."""
        return self.expired_at is not None

    def is_overdue(self, now: datetime) -> bool:
        """Whether a clean-up at this time finds it expired."""
        return not self.is_expired and self.expires_at is not None and self.expires_at <= now


def is_bookmark(metadata: Mapping[str, str]) -> bool:
    """Return whether a tag with this metadata is a bookmark."""
    return metadata.get(_KIND) == _BOOKMARK


def expires_after(metadata: Mapping[str, str]) -> timedelta | None:
    """Return after what time without a move the tag expires; None is never."""
    text = metadata.get(_EXPIRES_AFTER, "")
    # What another client wrote there and can't be read keeps the version: that loses nothing.
    return min(int(text) * MILLISECOND, LONGEST_EXPIRY) if text.isdecimal() and len(text) < 16 else None


def as_metadata(metadata: Mapping[str, str], expires_after: timedelta | None) -> dict[str, str]:
    """Return the metadata of a bookmark: a tag's, with what others keep in it."""
    others = {key: value for key, value in metadata.items() if key != _EXPIRES_AFTER}
    expiry = {} if expires_after is None else {_EXPIRES_AFTER: str(expires_after // MILLISECOND)}
    return {**others, _KIND: _BOOKMARK, **expiry}
