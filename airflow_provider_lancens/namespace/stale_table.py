"""The error of a commit to a table that is no longer what it was when the commit was prepared."""

from __future__ import annotations

from airflow_provider_lancens import spec_errors


class StaleTableError(spec_errors.ConcurrentModificationError):
    """The name belongs to another table by now, or another authority decides the table's versions (14)."""
