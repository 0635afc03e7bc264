"""Results of writes and of changes of columns. Plain data: imports nothing heavy."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_provider_lancens.spark.amounts import counted, rate_of, size_of


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of a write.

    If an earlier run with the same idempotency key had already committed, `committed` is false, `skipped` is
    true unless it was a try of the same execution, and everything but `seconds` describes that run's commit.
    """

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The version to read the rows at."""
    previous_version: int | None
    """The version that `version` follows; None if this write created the dataset."""
    rows: int
    files: int
    bytes: int
    """Size of the data files."""
    seconds: float
    """Wall-clock time of this call."""
    committed: bool
    """Whether this call made a new version."""
    published: bool = True
    """Whether the newest version has the rows; false if `version` is a staged one."""
    inserted: int | None = None
    """Of an upsert: the written rows whose keys the table didn't have. None for other writes."""
    updated: int | None = None
    """Of an upsert: the rows of the table that were replaced. None for other writes."""
    deleted: int | None = None
    """Of an upsert: the rows of the table that were deleted by `delete_when`. None for other writes."""

    skipped: bool = False
    """Whether nothing was written, since another execution has committed under the key."""
    newest_version: int | None = field(default=None, compare=False)
    """The table's version when an earlier run's commit was found; None if none was, or it isn't known."""

    @property
    def changes(self) -> dict[str, int]:
        """The rows that an upsert inserted, updated and deleted; empty for other writes."""
        counts = {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}
        return {name: count for name, count in counts.items() if count is not None}

    @property
    def is_outdated(self) -> bool:
        """Whether it is of a write that was skipped, and others have committed since."""
        return self.skipped and self.newest_version is not None and self.newest_version > self.version

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values; `inserted`, `updated` and `deleted` only of an upsert."""
        left_out = {"inserted", "updated", "deleted", "newest_version"} - self.changes.keys()
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    def __str__(self) -> str:
        changes = "".join(f", {count:,} {name}" for name, count in self.changes.items())
        size = f"{counted(self.rows, 'row')}, {counted(self.files, 'file')}, {size_of(self.bytes)}{changes}"
        if self.skipped:
            now = "" if self.newest_version is None else f"; the table is at version {self.newest_version}"
            return f"table {self.table}: skipped, version {self.version} was committed before ({size}){now}"
        did = "committed" if self.published else "staged"
        if not self.committed and not self.rows and not any(self.changes.values()):
            return f"table {self.table}: nothing to commit, at version {self.version}"
        if not self.committed:
            return f"table {self.table}: an earlier try has {did} version {self.version} ({size})"
        fast = rate_of(self.rows, self.seconds)
        return f"table {self.table}: {did} version {self.version} with {size} in {self.seconds:.1f} s{fast}"


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """Result of a change of a table's columns."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The version that has the columns; the newest one if nothing was to be done."""
    previous_version: int
    """The version before this call; the same as `version` if nothing was to be done."""
    columns: tuple[str, ...]
    """The columns that this call changed, by their names afterwards."""
    dropped_indices: tuple[str, ...]
    seconds: float
    """Wall-clock time of this call."""
    committed: bool
    """Whether this call made a new version."""

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        lists = {"columns": list(self.columns), "dropped_indices": list(self.dropped_indices)}
        return {**asdict(self), **lists}
