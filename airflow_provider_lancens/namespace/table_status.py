"""Status of a table as a poll finds it, and the condition that ends a wait for one of its versions.

This module imports only identifiers, so that DAG files and triggers can import it at no cost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_provider_lancens.identifiers import TableId


@dataclass(frozen=True, slots=True)
class TableStatus:
    """Status of a table as of one poll."""

    table: TableId
    location: str | None = None
    """Root of its dataset, an absolute path or a URL; None if the table doesn't exist."""
    version: int = 0
    """Newest version; 0 if it has none."""
    needs_listing: bool = False
    """Whether only the catalog table was read so far: `version` isn't known before its storage is listed."""
    denial: str = ""
    """The server's refusal, if it doesn't tell whether the table doesn't exist or may not be read."""

    def __str__(self) -> str:
        if self.denial:
            return f"Table {self.table} does not exist, or may not be read: {self.denial}"
        if self.location is None:
            return f"Table {self.table} does not exist"
        return f"Table {self.table} is at {f'version {self.version}' if self.version else 'no version yet'}"


MISSING_SECONDS = 600.0
"""Seconds after which a wait for a missing table logs a warning."""


def missing_text(table: TableId) -> str:
    """Return the warning about a table that still doesn't exist."""
    return (
        f"Table {table} still does not exist after a wait of {MISSING_SECONDS / 60:g} minutes: check the "
        "name of the table and of its database, and the connection; the wait goes on until its timeout"
    )


def without_numbers(text: str) -> str:
    """Return a message without durations and counts, by which a repetition is recognized."""
    return re.sub(r"\d+(\.\d+)?", "…", text)


@dataclass(frozen=True, slots=True)
class VersionCondition:
    """Which version ends a wait; by default any version."""

    after_version: int | None = None
    """The version must be greater than this one."""
    min_version: int | None = None
    """The version must be this one or greater."""

    other_than: int | None = None
    """The version must be another one, possibly smaller, since a table may be recreated."""
    at_location: str | None = None
    """The location whose version `other_than` is: at another one, the table was recreated. None is any."""

    @property
    def last_known(self) -> int | None:
        """The greatest version that doesn't end the wait; None if any does."""
        least = None if self.min_version is None else self.min_version - 1
        known = [bound for bound in (self.after_version, least, self.other_than) if bound is not None]
        return max(known, default=None)

    def holds(self, status: TableStatus) -> bool:
        """Return whether a table's status ends the wait; a table without a version never ends it."""
        if not status.version:
            return False
        if self.after_version is not None and status.version <= self.after_version:
            return False
        if status.version == self.other_than and self.at_location in (None, status.location):
            return False
        return self.min_version is None or status.version >= self.min_version

    def __str__(self) -> str:
        bounds = []
        if self.after_version is not None:
            bounds.append(f"a version greater than {self.after_version}")
        if self.min_version is not None:
            bounds.append(f"a version of at least {self.min_version}")
        if self.other_than is not None:
            bounds.append(f"a version other than {self.other_than}")
        return " and ".join(bounds) or "any version"
