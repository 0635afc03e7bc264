"""Whether a maintenance step is due, decided by the metadata of a table. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from airflow_provider_lancens.spark.maintenance.maintenance_options import IndexSpec
from airflow_provider_lancens.spark.maintenance.maintenance_plan import Thresholds


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a maintenance step is due."""

    is_due: bool
    reason: str
    """What was found, with the thresholds."""
    rebuild: bool = False
    """Whether the existing index has to be replaced: it can't be extended."""


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """The fragments of a version, as a compaction would treat them."""

    fragments: int
    planned: int
    """Fragments that it would rewrite."""
    small: int
    """Those of them that it would merge, each below the target rows."""
    rows: int
    """Rows of the version, without the deleted ones."""
    deleted: int

    def decide(self, thresholds: Thresholds) -> Decision:
        """Decide whether a compaction is due."""
        share = _share(self.deleted, self.rows + self.deleted)
        least, most = thresholds.min_small_fragments, thresholds.max_deleted_share
        reason = (
            f"{self.small} of {self.fragments} fragments are small and can be merged"
            f"{_set('min_small_fragments', least)}, {share:.1%} of the rows are deleted"
            f"{_set('max_deleted_share', most)}"
        )
        if not self.planned or not thresholds.limit_compaction:
            return Decision(bool(self.planned), reason)
        return Decision(_reaches(self.small, least) or _exceeds(share, most), reason)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a version an index covers."""

    spec: IndexSpec
    rows: int
    """Rows of the version, without the deleted ones."""
    present: str | None = None
    """The type of the existing index of that name, with its columns if they differ; None if there is none."""
    indexed: int = 0
    """Rows that it covers."""
    segments: int = 0
    bytes: int = 0
    misses_rows: bool = False
    """Whether queries by the index don't find rows that it claims to cover."""
    has_old_values: bool = False
    """Whether queries by the index may find rows by values that they had before."""
    deleted_share: float = 0.0
    """The share of its rows that the table no longer has, see `index_coverage.deleted_share`."""

    @property
    def is_of_type(self) -> bool:
        """Whether the existing index has the specified type."""
        return same_type(self.present or "", self.spec.index_type)

    def decide(self, thresholds: Thresholds) -> Decision:
        """Decide whether the index is due to be built or extended."""
        if not self.rows:
            return Decision(False, "the table has no rows")
        if self.present is None:
            return Decision(True, "the index does not exist")
        if not self.is_of_type:
            return Decision(True, f"the index is {self.present}, not {self.spec.index_type}", rebuild=True)
        if self.misses_rows:
            return Decision(True, "the index doesn't find rows that it claims to cover", rebuild=True)
        if self.has_old_values:
            return Decision(True, "the index may find rows by values that they had before", rebuild=True)
        most = thresholds.max_deleted_share
        if _exceeds(self.deleted_share, most or 0):
            deleted = f"{self.deleted_share:.1%} of the rows in the index are deleted"
            return Decision(True, f"{deleted}{_set('max_deleted_share', most)}", rebuild=True)
        most = thresholds.max_unindexed_share
        share = _share(max(self.rows - self.indexed, 0), self.rows)
        reason = f"{share:.1%} of {self.rows:,} rows are not indexed{_set('max_unindexed_share', most)}"
        return Decision(_exceeds(share, most or 0), reason)

    def decide_after_compaction(self, thresholds: Thresholds) -> Decision:
        """Decide where Spark has just compacted, and is running anyway: the index has to cover all rows."""
        return self.decide(replace(thresholds, max_unindexed_share=None))


@dataclass(frozen=True, slots=True)
class OldVersions:
    """The versions that a clean-up would remove."""

    removable: int
    delay: timedelta = timedelta(0)
    """How long the oldest of them could have been removed."""

    def decide(self, thresholds: Thresholds) -> Decision:
        """Decide whether a clean-up is due."""
        if not self.removable:
            return Decision(False, "no version can be removed")
        least, most = thresholds.min_removable_versions, thresholds.max_removal_delay
        since = timedelta(seconds=int(self.delay.total_seconds()))
        reason = (
            f"{self.removable} versions can be removed{_set('min_removable_versions', least)}, "
            f"the oldest for {since}{_set('max_removal_delay', most)}"
        )
        if not thresholds.limit_clean_up:
            return Decision(True, reason)
        return Decision(_reaches(self.removable, least) or _reaches(self.delay, most), reason)


def same_type(present: str, wanted: str) -> bool:
    """Whether two spellings name the same type of index."""
    return present.replace("_", "").upper() == wanted.replace("_", "").upper()


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _reaches(found: Any, least: Any) -> bool:
    return least is not None and found >= least


def _exceeds(found: float, most: float | None) -> bool:
    return most is not None and found > most


def _set(name: str, value: object) -> str:
    return "" if value is None else f" ({name}={value})"
