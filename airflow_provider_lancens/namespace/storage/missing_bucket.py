"""The error of a bucket that does not exist."""

from __future__ import annotations

from airflow_provider_lancens import spec_errors


class MissingBucketError(spec_errors.ServiceUnavailableError):
    """The bucket or container of a location does not exist (17)."""
