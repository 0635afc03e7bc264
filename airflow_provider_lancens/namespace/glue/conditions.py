"""Whether a server checks the VersionId of an update: AWS does, others that speak Glue may not.

moto's and some local servers take a stale one silently, and would lose commits. So a server that
isn't AWS is probed, once, before the first update that depends on it.
"""

from __future__ import annotations

import threading
import uuid
from urllib.parse import urlsplit

from lance_namespace.errors import ConcurrentModificationError, UnsupportedOperationError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.glue.calls import Calls
from airflow_provider_lancens.namespace.glue.errors import OF_NEW_TABLE, OF_TABLE

_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


class Conditions:
    """What is known of the server of one catalog."""

    def __init__(self, calls: Calls) -> None:
        """Know nothing yet."""
        self._calls = calls
        self._checks: bool | None = None
        self._lock = threading.Lock()

    def known(self) -> bool | None:
        """Whether the server checks a VersionId; None where it isn't AWS and no probe was made."""
        return self._checks if self._checks is not None or not self._is_aws() else True

    def require(self, namespace: NamespaceId) -> None:
        """Return where the server checks a VersionId.

        Args:
            namespace: an existing database, where a scratch entry is made and dropped.

        Raises:
            UnsupportedOperationError: (0) it doesn't; the message says what would.
        """
        with self._lock:  # else each thread's first commit would probe
            if self._checks is None:
                self._checks = self._is_aws() or self._refuses_a_stale_version(namespace)
        if not self._checks:
            raise UnsupportedOperationError(
                f"{self._calls.where} ignores the VersionId of an update, so managed_by=impl would lose "
                "commits there; use AWS Glue or a server that checks it, or managed_by=storage"
            )

    def _is_aws(self) -> bool:
        # Not probed there: a writer may be allowed to update its tables and not to create any.
        return (urlsplit(self._calls.endpoint).hostname or "").endswith(_AWS)

    def _refuses_a_stale_version(self, namespace: NamespaceId) -> bool:
        scratch = {"Name": f"lancens_probe_{uuid.uuid4().hex}"}
        place = {"DatabaseName": namespace.name}
        attempt = f"probe in {namespace} whether updates are conditional"
        self._calls.call(OF_NEW_TABLE, attempt, "create_table", **place, TableInput=scratch)
        try:
            first = self._calls.read(OF_TABLE, attempt, "get_table", "Table", **place, **scratch)
            version = {"VersionId": first["VersionId"]} if "VersionId" in first else {}
            for _ in ("it is true", "it is stale"):
                self._calls.call(OF_TABLE, attempt, "update_table", **place, **version, TableInput=scratch)
        except ConcurrentModificationError:
            return True
        finally:
            self._calls.call(OF_TABLE, attempt, "delete_table", **place, **scratch)
        return False
