"""What a wait for a table's version is about: a version that was seen, and the one that is wanted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The newest version of a table, as one look found it."""

    table: str
    """The table's identifier, ``database$table``."""
    version: int
    location: str
    """The root of its data set: an absolute path or a URL."""


@dataclass(frozen=True, slots=True)
class VersionCondition:
    """Which version ends a wait; with nothing given, any version at all."""

    after_version: int | None = None
    """The version has to be greater than this one."""
    min_version: int | None = None
    """The version has to be this one or greater."""

    other_than: int | None = None
    """The version has to be another one; a smaller one too, since a table may be made again."""

    @property
    def last_known(self) -> int | None:
        """The greatest version that doesn't end the wait; None where any does."""
        least = None if self.min_version is None else self.min_version - 1
        known = [bound for bound in (self.after_version, least, self.other_than) if bound is not None]
        return max(known, default=None)

    def holds(self, seen: TableVersion | None) -> bool:
        """Whether what a look found ends the wait; a table that isn't there yet (None) never does."""
        if seen is None:
            return False
        if self.after_version is not None and seen.version <= self.after_version:
            return False
        if self.other_than is not None and seen.version == self.other_than:
            return False
        return self.min_version is None or seen.version >= self.min_version

    def __str__(self) -> str:
        bounds = []
        if self.after_version is not None:
            bounds.append(f"a version greater than {self.after_version}")
        if self.min_version is not None:
            bounds.append(f"a version of at least {self.min_version}")
        if self.other_than is not None:
            bounds.append(f"another version than {self.other_than}")
        return " and ".join(bounds) or "any version"
