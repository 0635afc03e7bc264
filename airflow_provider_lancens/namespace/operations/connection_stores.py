"""The stores that the tables of a connection may be in without ``allowed_locations``: its own.

A connection whose root, or whose database, is in an object store uses its credentials for the buckets of its
root and of the table's database only: neither for other buckets nor for files of the machine. A table of
another client can't change that, unless its writer may move the database too. If root and database are local,
or in a storage that Lance can't read, they imply no restriction, and nothing is refused.

Reading the location of a database costs a request. So it is read only for a table outside of the root's
store, and kept.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.config import StorageConfig
from airflow_provider_lancens.namespace.locations import location_fault, shown_location
from airflow_provider_lancens.namespace.metastore_protocol import Metastore
from airflow_provider_lancens.namespace.storage.allowed_locations import ALLOWED_LOCATIONS
from airflow_provider_lancens.namespace.storage.location_overlap import is_remote, store_of
from airflow_provider_lancens.redaction import redact

log = logging.getLogger(__name__)

_KEPT_SECONDS = 600.0
_MOST = 10_000
"""Databases whose stores are kept."""


@dataclass(frozen=True, slots=True)
class ConnectionStores:
    """The stores of a connection."""

    metastore: Metastore
    config: StorageConfig
    _known: OrderedDict[NamespaceId, tuple[float, str]] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )
    """When the store of a database was read, and the store; empty if there is none to go by."""
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def check(self, location: str, database: NamespaceId, subject: str) -> None:
        """Check that a table is in one of the connection's own stores, unless ``allowed_locations`` is set.

        Args:
            location: the table's, which was checked to be a valid one.
            database: the namespace of the table.
            subject: what has the location, for the message.

        Raises:
            PermissionDeniedError: (15) it isn't.
        """
        if self.config.allowed.is_given:
            return
        store, root = store_of(location), store_of(self.config.root) if self.config.root else ""
        if store == root:
            return
        own = {root, self._store_of(database)} - {""}
        if store in own or not any(map(is_remote, own)):
            return
        raise spec_errors.PermissionDeniedError(
            f"{subject}: its location {shown_location(redact(location))} is in another store than the "
            f"connection's root and its database ({', '.join(sorted(map(redact, own)))}); if this connection "
            f"may use it, set its property {ALLOWED_LOCATIONS!r} to the prefixes of all its tables"
        )

    def _store_of(self, database: NamespaceId) -> str:
        with self._lock:
            read_at, store = self._known.get(database, (0.0, ""))
        if read_at and time.monotonic() - read_at < _KEPT_SECONDS:
            return store
        store = self._read(database)
        with self._lock:
            self._known[database] = (time.monotonic(), store)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)
        return store

    def _read(self, database: NamespaceId) -> str:
        try:
            location = self.metastore.get_namespace(database).location or ""
        except (spec_errors.PermissionDeniedError, spec_errors.NamespaceNotFoundError) as error:
            log.info("Database %s isn't read to find its store: %s", database, error)
            return ""
        return "" if not location or location_fault(location) else store_of(location)
