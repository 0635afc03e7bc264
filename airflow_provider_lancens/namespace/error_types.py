"""Errors of this package that are subclasses of the specification's. Loaded when one is raised or caught."""

from __future__ import annotations

from typing import ClassVar

from airflow_provider_lancens import spec_errors


class StaleTableError(spec_errors.ConcurrentModificationError):
    """The name belongs to another table by now, or another authority decides the table's versions (14)."""


class PassedVersionError(spec_errors.ConcurrentModificationError):
    """The table is past the version that it was expected to be at, and never returns to it (14)."""

    may_pass: ClassVar[bool] = False
    """Whether a later try may succeed; otherwise, the code says it."""


class DifferentDataError(spec_errors.InvalidInputError):
    """A write was committed under its idempotency key with other data, in whose place it isn't made (13)."""


class UnreadableTablesError(spec_errors.ServiceUnavailableError):
    """None of several tables of a database can be read: the server fails, or refuses the database (17)."""


class MissingBucketError(spec_errors.ServiceUnavailableError):
    """The bucket or container of a location does not exist (17)."""
