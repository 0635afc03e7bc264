"""Whether a store refuses to create an object that exists: commits of storage-managed tables depend on it.

Some stores with S3's interface ignore the condition and overwrite the object. Of two commits of one version,
the later one then silently replaces the earlier one.
"""

from __future__ import annotations

import threading
import uuid

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage import object_store
from airflow_provider_lancens.namespace.storage.object_store import RECORDED, StoreId
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from airflow_provider_lancens.redaction import redact

_TRIED = f"{RECORDED}/conditional-writes"
"""A file that remains, so that trying costs one request: it is refused where the file exists already."""
_supporting: set[StoreId] = set()
_lock = threading.Lock()


def require_conditional_writes(files: TableFiles) -> None:
    """Check that the store of a location refuses to overwrite, by trying it once in each process.

    Only stores with S3's interface are tried: local file systems, Google's and Azure's storage do.

    Args:
        files: the files at the location, to which the caller is about to write.

    Raises:
        UnsupportedOperationError: (0) it overwrites.
        LanceNamespaceError: (15, 16, 17) the storage failed.
    """
    if not object_store.is_s3(files.location):
        return
    store = files.store_id
    with _lock:
        if store in _supporting:
            return
        if not has_conditional_writes(files):
            raise spec_errors.UnsupportedOperationError(
                f"storage at {redact(files.location)} ignores If-None-Match: it overwrites objects that "
                "exist, so that one of two simultaneous commits would be lost; use a store with "
                "conditional writes, or a table with managed_by=impl, whose metastore decides"
            )
        _supporting.add(store)


def has_conditional_writes(files: TableFiles, path: str = _TRIED) -> bool:
    """Return whether the store of a location refuses to create a file that exists, by trying it.

    Args:
        files: the files at the location.
        path: a file that need not exist, and does afterwards.
    """
    for tried in (path, f"{path}-{uuid.uuid4()}"):  # another client may remove the first file meanwhile
        if not all(files.create_once(tried, uuid.uuid4().bytes) for _ in range(2)):
            return True
        files.remove_outdated(tried)
    return False
