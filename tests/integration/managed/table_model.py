"""A model of a managed table after any sequence of events, without a metastore or a storage."""

from dataclasses import dataclass, field
from typing import Any

Rows = tuple[int, ...]


@dataclass(frozen=True)
class Staged:
    """A staged commit; it may be sent at any later time, even twice."""

    request: dict[str, Any]
    version: int
    rows: Rows
    """All rows of that version."""


@dataclass
class Model:
    """The versions through the namespace and by path, each with all its rows, starting with version 1."""

    versions: list[Rows]
    storage: list[Rows]
    oldest: int = 1
    """What lies before was cleaned up."""
    unnamed: bool = False
    """The newest version is committed, and doesn't have its final name yet."""
    diverged: bool = False
    """A writer by path has the final name of a version that was committed."""
    last: Staged | None = None
    """What made the newest version, as far as the catalog table shows."""
    staged: list[Staged] = field(default_factory=list)

    @property
    def version(self) -> int:
        return len(self.versions)

    @property
    def verdict(self) -> str:
        if self.diverged:
            return "diverged"
        if self.unnamed or len(self.storage) == self.version:
            return "consistent"
        return "storage_ahead" if len(self.storage) > self.version else "metastore_ahead"

    def staged_now(self, row: int, request: dict[str, Any] | None = None) -> Staged:
        """The commit that Lance stages on the newest version; on a direct writer's, if it has found one."""
        if request is None:
            return Staged({}, self.version + 1, (*self.versions[-1], row))
        base: int = request["version"] - 1
        rows = self.versions[base - 1] if base <= self.version else self.storage[base - 1]
        return Staged(request, base + 1, (*rows, row))

    def commit(self, staged: Staged, *, named: bool = True) -> None:
        """Commit through the namespace."""
        assert staged.version == self.version + 1
        self.finish()
        self.versions.append(staged.rows)
        self.last = staged
        self.unnamed = True
        if named:
            self.finish()

    def finish(self) -> None:
        """Publish the last commit, as each reader and writer through a namespace does."""
        if self.unnamed:
            self.unnamed = False
            self.storage = list(self.versions)

    def commit_directly(self, row: int) -> None:
        """Commit directly; the final name of an unpublished version can be taken."""
        self.diverged |= self.unnamed
        self.unnamed = False
        self.storage.append((*self.storage[-1], row))

    def adopt(self) -> None:
        """Adopt the storage's versions; commits staged on an abandoned version must not be sent later."""
        if self.verdict == "consistent":
            return
        if self.verdict != "storage_ahead":
            self.staged.clear()
        self.versions = list(self.storage)
        self.diverged, self.last = False, None

    def forget_direct_commits(self) -> None:
        """Remove the manifests of direct commits; commits staged on them must not be sent later."""
        self.storage = self.versions[:-1] if self.diverged else list(self.versions)
        self.diverged, self.unnamed = False, self.diverged
        self.staged = [one for one in self.staged if one.version <= self.version + 1]

    def lose_the_newest_manifest(self) -> None:
        """Remove the newest manifest, and all other files of its version."""
        self.storage.pop()
