"""What a managed table must be after any sequence of events: a model, without a metastore or a storage."""

from dataclasses import dataclass, field
from typing import Any

Rows = tuple[int, ...]


@dataclass(frozen=True)
class Staged:
    """A commit that Lance staged; it may be sent at any later time, also twice."""

    request: dict[str, Any]
    version: int
    rows: Rows
    """All rows of that version."""


@dataclass
class Model:
    """The versions by name, and those by path, each with all its rows; version 1 comes first."""

    versions: list[Rows]
    storage: list[Rows]
    oldest: int = 1
    """What lies before was cleaned up."""
    unnamed: bool = False
    """The newest version is committed, and doesn't have its final name yet."""
    diverged: bool = False
    """A writer by path has the final name of a version that was committed."""
    last: Staged | None = None
    """What made the newest version, as far as the entry tells."""
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
        """What Lance would stage on the newest version."""
        return Staged(request or {}, self.version + 1, (*self.versions[-1], row))

    def commit(self, staged: Staged, *, named: bool = True) -> None:
        """Commit by name."""
        assert staged.version == self.version + 1
        self.finish()
        self.versions.append(staged.rows)
        self.last = staged
        self.unnamed = True
        if named:
            self.finish()

    def finish(self) -> None:
        """What everybody does who goes by name to the storage."""
        if self.unnamed:
            self.unnamed = False
            self.storage = list(self.versions)

    def commit_by_path(self, row: int) -> None:
        """The final name of an unnamed version is free for that."""
        self.diverged |= self.unnamed
        self.unnamed = False
        self.storage.append((*self.storage[-1], row))

    def adopt(self) -> None:
        """Take over the storage's versions; what was staged on one that's given up mustn't be sent later."""
        if self.verdict == "consistent":
            return
        if self.verdict != "storage_ahead":
            self.staged.clear()
        self.versions = list(self.storage)
        self.diverged, self.last = False, None

    def forget_commits_by_path(self) -> None:
        """Their manifests are removed."""
        self.storage = self.versions[:-1] if self.diverged else list(self.versions)
        self.diverged, self.unnamed = False, self.diverged

    def lose_the_newest_manifest(self) -> None:
        """It is removed, and with it all that is left of the version."""
        self.storage.pop()
