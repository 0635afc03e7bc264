"""Results of writes and of changes of columns. Plain data: imports nothing heavy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of a write.

    If an earlier run with the same idempotency key had already committed, `committed` is false and everything
    but `seconds` describes that run's commit.
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

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        size = f"{self.rows:,} rows, {self.files} files, {self.bytes / 1e6:,.1f} MB"
        if not self.committed:
            return f"table {self.table}: nothing to commit, still at version {self.version} ({size})"
        rate = self.rows / max(self.seconds, 0.001)
        did = "committed" if self.published else "staged"
        return (
            f"table {self.table}: {did} version {self.version} with {size} "
            f"in {self.seconds:.1f} s ({rate:,.0f} rows/s)"
        )


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
