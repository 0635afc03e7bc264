"""Probe whether a server checks the VersionId of an update: AWS does, Glue-compatible ones may not.

moto's and some local servers accept a stale one silently, and would lose commits. So a server that
isn't AWS is probed, once, before the first update that depends on it.
"""

from __future__ import annotations

import threading
import uuid
from urllib.parse import urlsplit

from lance_namespace.errors import ConcurrentModificationError, UnsupportedOperationError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.glue.api import GlueApi, GlueCall
from airflow_provider_lancens.namespace.glue.errors import NEW_TABLE_ERRORS, TABLE_ERRORS

_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


class GlueCasProbe:
    """Probe result of one catalog's server."""

    def __init__(self, calls: GlueApi) -> None:
        """Start without a result."""
        self._api = calls
        self._checks: bool | None = None
        self._lock = threading.Lock()

    def known(self) -> bool | None:
        """Whether the server checks a VersionId; None if it isn't AWS and wasn't probed."""
        return self._checks if self._checks is not None or not self._is_aws() else True

    def require(self, namespace: NamespaceId) -> None:
        """Check that the server checks a VersionId; probe it if that is unknown.

        Args:
            namespace: an existing database, in which a scratch table is created and dropped.

        Raises:
            UnsupportedOperationError: (0) it doesn't; the message says which servers do.
        """
        with self._lock:  # otherwise each thread's first commit would probe
            if self._checks is None:
                self._checks = self._is_aws() or self._refuses_a_stale_version(namespace)
        if not self._checks:
            raise UnsupportedOperationError(
                f"{self._api.where} ignores the VersionId of an update, so managed_by=impl would lose "
                "commits there; use AWS Glue or a server that checks it, or managed_by=storage"
            )

    def _is_aws(self) -> bool:
        # AWS isn't probed: a writer may be allowed to update its tables but not to create any.
        return (urlsplit(self._api.endpoint).hostname or "").endswith(_AWS)

    def _refuses_a_stale_version(self, namespace: NamespaceId) -> bool:
        scratch = {"Name": f"lancens_probe_{uuid.uuid4().hex}"}
        database = {"DatabaseName": namespace.name}
        attempt = f"probe in {namespace} whether updates are conditional"
        create = {**database, "TableInput": scratch}
        self._api.send(GlueCall("create_table", create, attempt, NEW_TABLE_ERRORS))
        try:
            read = GlueCall("get_table", {**database, **scratch}, attempt, TABLE_ERRORS)
            first = self._api.read(read, "Table")
            version = {"VersionId": first["VersionId"]} if "VersionId" in first else {}
            update = GlueCall("update_table", {**create, **version}, attempt, TABLE_ERRORS)
            for _ in ("it is current", "it is stale"):
                self._api.send(update)
        except ConcurrentModificationError:
            return True
        finally:
            self._api.send(GlueCall("delete_table", {**database, **scratch}, attempt, TABLE_ERRORS))
        return False
