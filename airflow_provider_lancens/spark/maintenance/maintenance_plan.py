"""What the maintenance of a table consists of, and when it is due."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta

from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_AGE,
    DEFAULT_MAX_DELETED_SHARE,
    DEFAULT_MAX_REMOVAL_DELAY,
    DEFAULT_MAX_UNINDEXED_SHARE,
    DEFAULT_MIN_REMOVABLE_VERSIONS,
    DEFAULT_MIN_SMALL_FRAGMENTS,
    DEFAULT_SEGMENTS,
    CompactionOptions,
    IndexSpec,
    check_index_names,
    check_positive,
    check_retention,
    check_thresholds,
)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When maintenance is due. None sets no threshold; a step without any is done if there is work for it.

    Raises:
        ValueError: a threshold is out of its range; the message names it.
    """

    min_small_fragments: int | None = None
    """Compact when it would merge at least as many fragments that are below the target rows."""
    max_deleted_share: float | None = None
    """Compact when a greater share of the table's rows is marked as deleted, 0 to 1."""
    max_unindexed_share: float | None = None
    """Index when a greater share of the rows isn't in the index, 0 to 1; a missing index is always built."""
    min_removable_versions: int | None = None
    """Clean up when at least as many versions can be removed."""
    max_removal_delay: timedelta | None = None
    """Clean up when a version could have been removed for that long, also if there are few."""

    def __post_init__(self) -> None:
        check_thresholds({one.name: getattr(self, one.name) for one in fields(self)})

    @property
    def limit_compaction(self) -> bool:
        """Whether there is a threshold for compaction."""
        return self.min_small_fragments is not None or self.max_deleted_share is not None

    @property
    def limit_clean_up(self) -> bool:
        """Whether there is a threshold for the clean-up of versions."""
        return self.min_removable_versions is not None or self.max_removal_delay is not None


DEFAULT_THRESHOLDS = Thresholds(
    min_small_fragments=DEFAULT_MIN_SMALL_FRAGMENTS,
    max_deleted_share=DEFAULT_MAX_DELETED_SHARE,
    max_unindexed_share=DEFAULT_MAX_UNINDEXED_SHARE,
    min_removable_versions=DEFAULT_MIN_REMOVABLE_VERSIONS,
    max_removal_delay=DEFAULT_MAX_REMOVAL_DELAY,
)
"""Those of `maintain_table`."""


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The steps of a table's maintenance, and when they pay.

    Raises:
        ValueError: a value is invalid; the message names it.
    """

    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    """Which fragments to rewrite, and how."""
    indices: tuple[IndexSpec, ...] = ()
    """The indices to build and extend; others are left alone."""
    segments: int = DEFAULT_SEGMENTS
    """Maximum number of segments that an index is built with."""
    older_than: timedelta = DEFAULT_AGE
    """Minimum age of versions to remove."""
    keep_versions: int = 1
    """Number of newest versions to keep regardless of age."""
    keep_keys: timedelta | None = None
    """Age at which an idempotency key expires, see `clean_up_versions`; None keeps all."""
    orphans_older_than: timedelta | None = None
    """Minimum age of files of failed writes to remove, see `remove_orphans`; None leaves them. Done where
    a clean-up is due, since it lists all files of the table."""
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    """When each step is due."""

    def __post_init__(self) -> None:
        check_positive("segments", self.segments)
        check_retention(
            self.older_than,
            self.keep_versions,
            keep_keys=self.keep_keys,
            orphans_older_than=self.orphans_older_than,
        )
        check_index_names(self.indices)
