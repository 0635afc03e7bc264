"""Results of maintenance. Plain data: imports nothing heavy, and is not loaded where a DAG is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


class Result:
    """A dataclass that can be pushed to XCom."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True, slots=True)
class CompactionResult(Result):
    """Result of a compaction."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The version that it made; the newest one if it made none."""
    previous_version: int
    """The version whose fragments it rewrote."""
    fragments_removed: int
    fragments_added: int
    files_removed: int
    """No longer part of the newest version; clean-up deletes them once no version needs them."""
    files_added: int
    tasks: int
    """Number of Spark tasks."""
    seconds: float
    """Wall-clock time of the call."""
    committed: bool
    """Whether it rewrote anything."""
    reason: str = ""
    """What was found, and why it was done or not."""


@dataclass(frozen=True, slots=True)
class IndexResult(Result):
    """An index of a table."""

    table: str
    """Identifier, such as ``db$table``."""
    index: str
    """Its name."""
    column: str
    index_type: str
    version: int
    """The version that it made; the newest one if the index already existed."""
    previous_version: int
    """The version whose rows are in it; the newest one if the index already existed."""
    rows: int
    """Rows that it covers; later ones are searched without it."""
    segments: int
    """Segments that a query searches, one after the other."""
    bytes: int
    seconds: float
    """Wall-clock time of the call."""
    created: bool
    """Whether this call built or extended it."""
    reason: str = ""
    """What was found, and why it was done or not."""


@dataclass(frozen=True, slots=True)
class CleanUpResult(Result):
    """Result of a clean-up, or of its dry run."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The newest version, which is kept."""
    versions: int
    """Number of removed versions."""
    files: int
    """Number of data, deletion and index files removed with them."""
    bytes: int
    """Total size of all removed files."""
    tagged: int
    """Older versions that a tag keeps."""
    seconds: float
    """Wall-clock time of the call."""
    dry_run: bool
    """Whether nothing was actually removed."""
    expired_keys: int = 0
    """Number of idempotency keys that expired by `keep_keys`."""
    expired_bookmarks: list[str] = field(default_factory=list)
    """Names of the bookmarks that weren't moved in time, and whose versions aren't kept any more."""
    cleaned_up: bool = True
    """Whether it was due; if not, nothing else was counted."""
    reason: str = ""
    """What was found, and why it was done or not."""


@dataclass(frozen=True, slots=True)
class FileCheck(Result):
    """Which versions of a table refer to files that the storage lacks."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int | None
    """The newest version; None if nothing was written yet."""
    checked: int
    """Number of checked versions."""
    missing: Mapping[int, tuple[str, ...]]
    """By version, the missing paths, relative to the table's location."""
    complete_version: int | None
    """The newest version that lacks no file; None if there is none."""


@dataclass(frozen=True, slots=True)
class UndoneCommit:
    """A commit that a restore undoes."""

    version: int
    operation: str
    """Lance's name of it, such as ``Append``; empty if the version was cleaned up."""
    idempotency_key: str | None
    """The key under which to write its rows again; None if it had none."""
    rows: int
    """Rows that it wrote or deleted; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class RestoreResult(Result):
    """An older version that was made the newest again."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The newest version now."""
    restored_version: int | None
    """The older version that it restores; None if an earlier run did and its commit isn't kept any more."""
    undone: tuple[UndoneCommit, ...]
    """The commits in between."""
    seconds: float
    """Wall-clock time of the call."""
    restored: bool
    """Whether this call committed; false if an earlier run did, or no version is to be restored."""
    skipped: bool = False
    """Whether nothing was restored, since another execution has committed under the key."""
    newest_version: int | None = field(default=None, compare=False)
    """The table's version when the restore was skipped; None if it wasn't."""

    @property
    def is_outdated(self) -> bool:
        """Whether it is of a restore that was skipped, and others have committed since."""
        return self.skipped and self.newest_version is not None and self.newest_version > self.version

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        values = Result.as_dict(self)
        del values["newest_version"]
        return {**values, "undone": list(values["undone"])}


@dataclass(frozen=True, slots=True)
class MaintenanceResult(Result):
    """What the maintenance of a table did, and why."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The newest version afterwards."""
    previous_version: int
    """The version that the decisions are based on."""
    compacted: bool
    indexed: list[str]
    """Names of the indices that were built or extended."""
    cleaned_up: bool
    compaction: CompactionResult
    indices: list[IndexResult]
    clean_up: CleanUpResult
    orphans: dict[str, int] | None
    """Number of removed ``files`` of failed writes, and their ``bytes``; None if not asked for or not due."""
    seconds: float
    """Wall-clock time of the call."""
