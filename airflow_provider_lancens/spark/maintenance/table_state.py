"""What the metadata of one version says about the maintenance of its table. No Spark, no lease, no write."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.namespace.storage.version_tags import list_branches, list_tags
from airflow_provider_lancens.spark.bookmarks.expire_bookmarks import overdue_bookmarks
from airflow_provider_lancens.spark.maintenance.decisions import (
    Coverage,
    Decision,
    Fragmentation,
    OldVersions,
)
from airflow_provider_lancens.spark.maintenance.maintained_table import written_version
from airflow_provider_lancens.spark.maintenance.maintenance_options import CompactionOptions, IndexSpec
from airflow_provider_lancens.spark.maintenance.maintenance_plan import Thresholds
from airflow_provider_lancens.spark.maintenance.rewritten_columns import has_old_values
from airflow_provider_lancens.spark.table.index_coverage import deleted_share, misses_rows
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.optimize import CompactionPlan
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)

_TARGET_ROWS = 1024 * 1024
"""Lance's default."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at its newest version."""

    target: ResolvedTable
    dataset: LanceDataset
    version: int

    @property
    def table(self) -> str:
        """The table's identifier."""
        return str(self.target.id)

    def fragmentation(self, options: CompactionOptions) -> Fragmentation:
        """Return what a compaction would do, by the manifest alone."""
        tasks = [task.fragments for task in plan_compaction(self.dataset, options).tasks]
        merged = [fragment for task in tasks if len(task) > 1 for fragment in task]
        target = options.target_rows_per_fragment or _TARGET_ROWS
        fragments = [fragment.metadata for fragment in self.dataset.get_fragments()]
        return Fragmentation(
            fragments=len(fragments),
            planned=sum(map(len, tasks)),
            small=sum(fragment.num_rows < target for fragment in merged),
            rows=sum(fragment.num_rows for fragment in fragments),
            deleted=sum(fragment.num_deletions for fragment in fragments),
        )

    def coverage(self, spec: IndexSpec) -> Coverage:
        """Return how much of the table an index covers, by metadata alone."""
        rows = self.dataset.count_rows()
        found = described_index(self.dataset, spec.name)
        if found is None:
            return Coverage(spec, rows)
        elsewhere = "" if found.field_names == [spec.column] else f" on {', '.join(found.field_names)}"
        return Coverage(
            spec=spec,
            rows=rows,
            present=f"{found.index_type}{elsewhere}",
            indexed=found.num_rows_indexed,
            segments=len(found.segments),
            bytes=found.total_size_bytes or 0,
            misses_rows=misses_rows(self.dataset, found.segments),
            has_old_values=has_old_values(self.dataset, found),
            deleted_share=deleted_share(self.dataset, found),
        )

    def old_versions(self, older_than: timedelta, keep_versions: int) -> OldVersions:
        """Return the versions that a clean-up would remove, by the age of their manifests: one listing.

        Tags and branches are only read if there are such versions.
        """
        manifests = Manifests(self.target.dataset.location, self.target.dataset.storage_options).all()
        now = datetime.now(UTC).timestamp()
        removable = {
            version: now - (manifests[version].modified_millis or 0) / 1000 - older_than.total_seconds()
            for version in sorted(v for v in manifests if v <= self.version)[:-keep_versions]
        }
        delays = {version: delay for version, delay in removable.items() if delay >= 0}
        kept = self._referenced() if delays else set()
        late = [delay for version, delay in delays.items() if version not in kept]
        return OldVersions(len(late), timedelta(seconds=max(late, default=0)))

    def _referenced(self) -> set[int]:
        overdue = overdue_bookmarks(self.dataset, self.target.dataset.manifests, datetime.now(UTC))
        return referenced_versions(self.dataset, {bookmark.name for bookmark in overdue})

    def decide_compaction(self, options: CompactionOptions, thresholds: Thresholds) -> Decision:
        """Decide whether a compaction is due, and log it."""
        return self._logged("compaction", self.fragmentation(options).decide(thresholds))

    def decide_index(
        self, spec: IndexSpec, thresholds: Thresholds, *, compacted: bool = False
    ) -> tuple[Coverage, Decision]:
        """Decide whether an index is due to be built or extended, and log it.

        Args:
            spec: the index.
            thresholds: when it is due.
            compacted: whether Spark has just compacted the table.
        """
        coverage = self.coverage(spec)
        decide = coverage.decide_after_compaction if compacted else coverage.decide
        return coverage, self._logged(f"index {spec.name!r}", decide(thresholds))

    def decide_clean_up(self, older_than: timedelta, keep_versions: int, thresholds: Thresholds) -> Decision:
        """Decide whether a clean-up of versions is due, and log it."""
        return self._logged("clean-up", self.old_versions(older_than, keep_versions).decide(thresholds))

    def _logged(self, step: str, decision: Decision) -> Decision:
        due = "is due" if decision.is_due else "is not due"
        _log.info("table %s: %s %s at version %d: %s", self.table, step, due, self.version, decision.reason)
        return decision


def referenced_versions(dataset: LanceDataset, but: Collection[str] = ()) -> set[int]:
    """Return the versions that tags, except those of these names, and branches keep."""
    tags = list_tags(dataset).items()
    branches = list_branches(dataset).values()
    tagged = {int(tag["version"]) for name, tag in tags if name not in but}
    return tagged | {branch["parent_version"] for branch in branches}


def plan_compaction(dataset: LanceDataset, options: CompactionOptions) -> CompactionPlan:
    """Plan which fragments to rewrite, by the manifest alone."""
    from lance.optimize import Compaction
    from lance.optimize import CompactionOptions as LanceOptions

    settings: dict[str, Any] = options.as_lance()
    # A Lance that can write other formats takes the one that the table's configuration names, and others
    # may read this table with an older Lance. One that doesn't know the option keeps the format.
    if "data_storage_version" in LanceOptions.__annotations__:
        settings["data_storage_version"] = dataset.data_storage_version
    return Compaction.plan(dataset, cast("Any", settings))


def described_index(dataset: LanceDataset, name: str) -> Any:
    """Return Lance's description of the index of that name; None if there is none."""
    return next((index for index in dataset.describe_indices() if index.name == name), None)


@contextlib.contextmanager
def table_state(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> Iterator[TableState]:
    """Open a declared table to read its state.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.

    Raises:
        InvalidInputError: (13) `table` isn't a valid identifier.
        TableNotFoundError: (4) it isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidTableStateError: (19) the metastore decides its versions, and a direct writer bypassed it.
    """
    with resolved_table(namespace, table) as target:
        version = written_version(target)
        yield TableState(target, target.open(version), version)
