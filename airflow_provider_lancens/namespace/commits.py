"""A commit of an implementation-managed table: its record in the entry, and its manifest's way.

Lance stages the manifest of a version in ``_versions``, under a name of its own. It is recorded where
no clean-up of Lance's and no writer by path goes, then committed, then given its final name; see
`managed` for what holds at which step.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, field
from typing import Self

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    LanceNamespaceError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.namespace import marks
from airflow_provider_lancens.namespace.manifests import Manifest, Manifests
from airflow_provider_lancens.namespace.metastore import Table
from airflow_provider_lancens.namespace.storage import RECORDED, VERSIONS, manifest_names, version_of

log = logging.getLogger(__name__)

V1_SCHEME, V2_SCHEME = "V1", "V2"
_LONGEST_RECORD = 400
"""Characters; one of ours has about 140."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Which manifest makes which version."""

    version: int
    staged: str
    """The name of the file that Lance staged in ``_versions``; no two commits share one."""
    scheme: str = V2_SCHEME
    """Lance's naming scheme for the final name."""

    def __post_init__(self) -> None:
        if self.scheme not in (V1_SCHEME, V2_SCHEME):
            raise InvalidInputError(
                f"naming_scheme: expected {V1_SCHEME!r} or {V2_SCHEME!r}, got {self.scheme!r}"
            )
        if not self.staged or "/" in self.staged or version_of(self.staged) is not None:
            raise InvalidInputError(
                f"manifest_path: expected a staged manifest in {VERSIONS!r}, whose name is not yet that of a "
                f"version, got {self.staged!r}"
            )

    @classmethod
    def of(cls, entry: Table) -> Self | None:
        """The commit that made an entry's version; None where that was reached in another way.

        Raises:
            InvalidTableStateError: (19) the entry's record can't be read.
        """
        text = entry.parameters.get(marks.COMMIT)
        if not text:
            return None
        try:
            commit = cls(**json.loads(text[:_LONGEST_RECORD]))
        except (TypeError, ValueError, InvalidInputError) as error:
            raise InvalidTableStateError(
                f"table {entry.id}: its parameter {marks.COMMIT!r} was overwritten, no use: {error}; "
                "without it, the manifest on the storage counts: look there, then remove the parameter"
            ) from error
        return commit if commit.version == marks.managed_version(entry) else None

    def as_parameter(self) -> str:
        """As it stands in the entry."""
        return json.dumps(asdict(self))

    @property
    def staged_path(self) -> str:
        """Where Lance put the manifest."""
        return f"{VERSIONS}/{self.staged}"

    @property
    def recorded_path(self) -> str:
        """Where it is recorded.

        Under its final name, in a folder of its own: Lance opens a manifest of any other name only after
        copying it to its final place, over whatever is there.
        """
        return f"{RECORDED}/{self.staged}/{self._final_name}"

    @property
    def final_path(self) -> str:
        """Where every reader looks for that version."""
        return f"{VERSIONS}/{self._final_name}"

    @property
    def _final_name(self) -> str:
        v2_name, v1_name = manifest_names(self.version)
        return v1_name if self.scheme == V1_SCHEME else v2_name


@dataclass(slots=True)
class Publication:
    """A manifest on its way from where Lance staged it to its final name."""

    manifests: Manifests
    commit: Commit
    content: bytes | None = field(default=None, repr=False)
    """Once it was recorded here."""

    def record(self) -> None:
        """Record the staged manifest, before its commit.

        Raises:
            InvalidInputError: (13) it isn't there.
        """
        self.content = self.manifests.read(self.commit.staged_path)
        if self.content is None:
            raise InvalidInputError(
                f"manifest_path: no {self.commit.staged_path} at {self.manifests.location}; stage it there"
            )
        self.manifests.create(self.commit.recorded_path, self.content)

    def finish(self) -> Manifest | None:
        """Give the recorded manifest its final name, after its commit.

        Returns:
            None where it isn't recorded any more: somebody else has finished it.

        Raises:
            InvalidTableStateError: (19) another manifest has that name.
        """
        content = self.content or self.manifests.read(self.commit.recorded_path)
        if content is None:
            return None
        if not self.manifests.create(self.commit.final_path, content):
            raise InvalidTableStateError(
                f"{self.manifests.location}: version {self.commit.version} is {self.commit.recorded_path}, "
                f"but a writer by path made another {self.commit.final_path}; compare and repair"
            )
        self._remove(self.commit.recorded_path, self.commit.staged_path)
        return self.manifests.at(self.commit.final_path, self.commit.version, len(content))

    def withdraw(self) -> None:
        """Take back the record of a commit that was refused; what was staged is for Lance to remove."""
        self._remove(self.commit.recorded_path)

    def was_finished(self) -> bool:
        """Whether the version has, under its final name, the manifest that was recorded here."""
        return self.content is not None and self.manifests.read(self.commit.final_path) == self.content

    def _remove(self, *paths: str) -> None:
        try:
            self.manifests.remove(*paths)
        except LanceNamespaceError as error:  # litter, and no more: nobody takes it for a version
            log.warning("%s: these stay behind, %s: %s", self.manifests.location, ", ".join(paths), error)


def publish(manifests: Manifests, commit: Commit) -> Manifest:
    """Make a staged manifest a version of a data set that no metastore decides: who has the name, has won.

    Raises:
        ConcurrentModificationError: (14) that version exists.
        TableVersionNotFoundError: (11) the staged file is gone, and so is the version.
    """
    content = manifests.read(commit.staged_path)
    if content is None and manifests.find(commit.version) is None:
        raise TableVersionNotFoundError(
            f"{manifests.location}: version {commit.version} and its staged manifest are both gone"
        )
    # Where the staged file is gone, this may be the same request again, or a clean-up took it for litter:
    # whose version it is then, its transaction tells.
    if content is None or not manifests.create(commit.final_path, content):
        raise ConcurrentModificationError(f"{manifests.location}: version {commit.version} exists already")
    manifests.remove(commit.staged_path)
    return manifests.at(commit.final_path, commit.version, len(content))
