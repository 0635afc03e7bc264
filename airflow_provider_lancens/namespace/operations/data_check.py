"""Which of many catalog tables have a dataset, for lists that leave out those that are only declared."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import urlsplit

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from airflow_provider_lancens.namespace.storage.missing_bucket import MissingBucketError

log = logging.getLogger(__name__)

_UNKNOWN = (
    spec_errors.PermissionDeniedError,
    spec_errors.UnauthenticatedError,
    spec_errors.ServiceUnavailableError,
    spec_errors.ThrottlingError,
)
"""The storage didn't say whether a dataset is there."""


class DataCheck:
    """Check tables one by one for data; a storage that didn't respond isn't checked again.

    A table that can't have a dataset has none: its location or its bucket is missing, or isn't a storage
    that Lance reads. A table whose storage doesn't answer, or denies access, counts as one
    that has: a list that left it out would hide data that is only out of reach. Both are logged.
    """

    def __init__(self, is_only_declared: Callable[[CatalogTable], bool]) -> None:
        """Take the question that is asked of each table."""
        self._is_only_declared = is_only_declared
        self._unavailable: dict[str, spec_errors.LanceNamespaceError] = {}

    def has_data(self, table: CatalogTable) -> bool:
        """Whether a dataset lies at a table's location, or may lie there."""
        try:
            return not self._ask(table)
        except spec_errors.LanceNamespaceError as error:
            may_have_data = isinstance(error, _UNKNOWN) and not isinstance(error, MissingBucketError)
            if may_have_data:
                log.warning(
                    "Table %s is listed, but whether it has data could not be checked: %s", table.id, error
                )
            else:
                log.warning("Table %s is not listed, since it cannot have data: %s", table.id, error)
            return may_have_data

    def _ask(self, table: CatalogTable) -> bool:
        storage = _storage_of(table.location or "")
        if storage in self._unavailable:
            raise self._unavailable[storage]
        try:
            return self._is_only_declared(table)
        except spec_errors.ServiceUnavailableError as error:
            # Each try takes until its timeout, and a database may have a thousand tables there.
            self._unavailable[storage] = error
            raise


def _storage_of(location: str) -> str:
    """The scheme and the bucket, or the host."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return location
    return f"{parts.scheme}://{parts.netloc}"
