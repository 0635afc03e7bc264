"""High-water mark: the newest version committed through the metastore, recorded beside the data.

Another client that alters a catalog table writes back all the parameters that it read before, so it can set
``version`` back. The storage then has versions that the metastore doesn't know, as after a direct writer's
commit. The mark distinguishes the two cases: it holds a version and the digest of its manifest.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.object_store import RECORDED

log = logging.getLogger(__name__)

_MARK = re.compile(rf"{RECORDED}/committed-(\d{{1,20}})")


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """High-water mark of one dataset. Errors on writing it are logged: a commit is valid without it."""

    manifests: Manifests

    def raise_to(self, version: int, content: bytes) -> str:
        """Record a committed version.

        Args:
            version: the metastore's version.
            content: its manifest.

        Returns:
            The path of the previous mark, which may be removed.
        """
        with self._logging_errors(version):
            self.manifests.put(_path(version), _digest(content))
        return _path(version - 1)

    def move_to(self, version: int) -> None:
        """Record a version, possibly a lower one, to which the metastore was moved without a commit."""
        with self._logging_errors(version):
            content = self.manifests.read_version(version)
            outdated = [path for path in map(_path, self._versions()) if path != _path(version)]
            if content is not None:
                self.raise_to(version, content)
            self.manifests.remove(*outdated)

    def version(self) -> int:
        """Return the newest recorded version whose manifest still exists; 0 if there is none."""
        return next((version for version in self._versions() if self._is_recorded(version)), 0)

    @contextlib.contextmanager
    def _logging_errors(self, version: int) -> Iterator[None]:
        try:
            yield
        except spec_errors.LanceNamespaceError as error:
            log.warning(
                "%s: could not record version %d as the high-water mark: %s",
                self.manifests.location,
                version,
                error,
            )

    def _versions(self) -> list[int]:
        marks = (_MARK.fullmatch(file.path) for file in self.manifests.below(RECORDED))
        return sorted((int(mark[1]) for mark in marks if mark), reverse=True)

    def _is_recorded(self, version: int) -> bool:
        # Versions may have been abandoned, and their numbers reused.
        content = self.manifests.read_version(version)
        return content is not None and self.manifests.read(_path(version)) == _digest(content)


def _path(version: int) -> str:
    return f"{RECORDED}/committed-{version}"


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
