"""Commit record of an implementation-managed table, and publication of its manifest.

Lance stages the manifest of a version in ``_versions``, under a unique name. It is recorded where neither
Lance's clean-up nor a direct writer touches it, then committed, then given its final name; see
`managed_versions` for the guarantees of each step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace import table_properties
from airflow_provider_lancens.namespace.managed.high_water_mark import HighWaterMark
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable
from airflow_provider_lancens.namespace.storage.manifests import Manifest, Manifests
from airflow_provider_lancens.namespace.storage.object_store import (
    RECORDED,
    VERSIONS,
    manifest_names,
    version_of,
)

V1_SCHEME, V2_SCHEME = "V1", "V2"
_LONGEST_RECORD = 400
"""In characters; a valid record has about 140."""
_STAGED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")
"""Names of staged manifests: Lance's, such as ``2.manifest-<uuid>``, and nothing that a path could mean."""
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """Version and the staged manifest that made it."""

    version: int
    staged: str
    """Name of the file that Lance staged in ``_versions``, unique per commit."""
    scheme: str = V2_SCHEME
    """Lance's manifest naming scheme for the final name."""

    def __post_init__(self) -> None:
        if self.scheme not in (V1_SCHEME, V2_SCHEME):
            raise spec_errors.InvalidInputError(
                f"naming_scheme: expected {V1_SCHEME!r} or {V2_SCHEME!r}, got {self.scheme!r}"
            )
        if type(self.version) is not int or not 0 < self.version < 2**63:
            raise spec_errors.InvalidInputError(
                f"version: expected a whole number of at least 1, got {self.version!r}"
            )
        if not _is_staged_name(self.staged):
            raise spec_errors.InvalidInputError(
                f"manifest_path: expected a staged manifest in {VERSIONS!r} whose name is not that "
                f"of a version, and has letters, digits, '.', '-' and '_' only, got {self.staged!r}"
            )

    @classmethod
    def of(cls, catalog_table: CatalogTable) -> Self | None:
        """Return the commit that made a table's current version; None if no commit did.

        Raises:
            InvalidTableStateError: (19) the commit record can't be parsed.
        """
        text = catalog_table.parameters.get(table_properties.COMMIT)
        if not text:
            return None
        try:
            commit = cls(**json.loads(text[:_LONGEST_RECORD]))
        except (TypeError, ValueError, spec_errors.InvalidInputError) as error:
            raise spec_errors.InvalidTableStateError(
                f"table {catalog_table.id}: its parameter {table_properties.COMMIT!r} was overwritten with "
                f"an invalid value: {error}; without it, the manifests on the storage count: check "
                "them, then remove the parameter"
            ) from error
        return commit if commit.version == table_properties.managed_version(catalog_table) else None

    def as_parameter(self) -> str:
        """Return the value of the table parameter."""
        return json.dumps(asdict(self))

    @property
    def staged_path(self) -> str:
        """Path at which Lance staged the manifest."""
        return f"{VERSIONS}/{self.staged}"

    @property
    def recorded_path(self) -> str:
        """Path at which the manifest is recorded.

        It has its final name, in a folder of its own: Lance opens a manifest of any other name only after
        copying it to its final path, overwriting what is there.
        """
        return f"{RECORDED}/{self.staged}/{self._final_name}"

    @property
    def final_path(self) -> str:
        """Path at which readers expect that version."""
        return f"{VERSIONS}/{self._final_name}"

    @property
    def _final_name(self) -> str:
        v2_name, v1_name = manifest_names(self.version)
        return v1_name if self.scheme == V1_SCHEME else v2_name


@dataclass(slots=True)
class Publication:
    """Publication of a manifest from its staged path to its final name."""

    commit: CommitRecord
    content: bytes | None = field(default=None, repr=False)
    """The manifest, once this instance has recorded it."""

    def record(self, manifests: Manifests) -> None:
        """Record the staged manifest, before its commit.

        Raises:
            InvalidInputError: (13) it doesn't exist.
            InvalidTableStateError: (19) another manifest is recorded in its place.
            ServiceUnavailableError: (17) the storage didn't record it.
        """
        self.content = manifests.read(self.commit.staged_path)
        if self.content is None:
            raise spec_errors.InvalidInputError(
                f"manifest_path: {self.commit.staged_path} does not exist at "
                f"{manifests.location}; stage it there"
            )
        if not manifests.create(self.commit.recorded_path, self.content):
            raise spec_errors.InvalidTableStateError(
                f"{manifests.location}: {self.commit.recorded_path} has another content than the staged "
                f"{self.commit.staged_path}, though only its writer may make it; nothing was committed"
            )

    def finish(self, manifests: Manifests) -> Manifest | None:
        """Give the recorded manifest its final name, after its commit.

        Returns:
            None if it is no longer recorded: another process has finished it.

        Raises:
            InvalidTableStateError: (19) another manifest has that name.
        """
        content = self.content or manifests.read(self.commit.recorded_path)
        if content is None:
            return None
        if not manifests.create(self.commit.final_path, content):
            raise spec_errors.InvalidTableStateError(
                f"{manifests.location}: version {self.commit.version} is "
                f"{self.commit.recorded_path}, but a direct writer wrote a different "
                f"{self.commit.final_path}; compare and repair"
            )
        mark_before = HighWaterMark(manifests).raise_to(self.commit.version, content)
        manifests.remove_outdated(self.commit.recorded_path, self.commit.staged_path, mark_before)
        return manifests.at(self.commit.final_path, self.commit.version, len(content))

    def withdraw(self, manifests: Manifests) -> None:
        """Remove the recorded manifest of a refused commit; Lance removes the staged one."""
        manifests.remove_outdated(self.commit.recorded_path)

    def was_finished(self, manifests: Manifests) -> bool:
        """Whether the manifest under the final name is the recorded manifest."""
        return self.content is not None and manifests.read(self.commit.final_path) == self.content


def publish(manifests: Manifests, commit: CommitRecord) -> Manifest:
    """Commit a staged manifest where no metastore is the version authority, and remove the staged file.

    Raises:
        ConcurrentModificationError: (14) that version exists.
        TableVersionNotFoundError: (11) the staged file is gone, and so is the version.
    """
    manifest = create_version(manifests, commit, lambda: None)
    manifests.remove_outdated(commit.staged_path)
    return manifest


def create_version(
    manifests: Manifests, commit: CommitRecord, check_allowed: Callable[[], object]
) -> Manifest:
    """Create a version from its staged manifest, which remains: creating the final name decides.

    Args:
        manifests: the manifests of the dataset.
        commit: the version, and its staged manifest.
        check_allowed: called before the version is created, while the staged manifest is read; an error that
            it raises is raised here.

    Raises:
        ConcurrentModificationError: (14) that version exists.
        TableVersionNotFoundError: (11) the staged file is gone, and so is the version.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="lance-commit") as pool:
        reading = pool.submit(manifests.read, commit.staged_path)
        check_allowed()
    content = reading.result()
    if content is None and manifests.find(commit.version) is None:
        raise spec_errors.TableVersionNotFoundError(
            f"{manifests.location}: version {commit.version} and its staged manifest are both missing"
        )
    # If the staged file is gone, this may be a repeated request, or a clean-up may have removed it: the
    # version's transaction shows which writer made it.
    if content is None or not manifests.create(commit.final_path, content):
        raise spec_errors.ConcurrentModificationError(
            f"{manifests.location}: version {commit.version} already exists"
        )
    return manifests.at(commit.final_path, commit.version, len(content))


def _is_staged_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and len(name) <= _LONGEST_NAME
        and _STAGED_NAME.fullmatch(name) is not None
        and version_of(name) is None
    )
