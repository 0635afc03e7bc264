"""State of a table on which maintenance decides: fragments, indices, versions; and the steps that are due."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, cast

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS, is_conflict, panics_as_errors
from airflow_provider_lancens.namespace.storage.manifests import Manifest, Manifests
from airflow_provider_lancens.namespace.storage.missing_files import StoredSegments
from airflow_provider_lancens.namespace.storage.version_tags import list_branches, list_tags
from airflow_provider_lancens.spark.bookmarks import overdue_bookmarks
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    CompactionOptions,
    IndexSpec,
    Thresholds,
)
from airflow_provider_lancens.spark.observed import ObservedCommit
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef, VersionAuthority
from airflow_provider_lancens.spark.table.history import transactions
from airflow_provider_lancens.spark.table.index_coverage import (
    deleted_share,
    lacks_column,
    misses_rows,
    versions_of_rows,
    were_updated,
)
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.dataset import DatasetStats
    from lance.fragment import LanceFragment
    from lance.optimize import CompactionPlan
    from lance_namespace import LanceNamespace
    from lance_namespace_urllib3_client.models import TableVersion

    from airflow_provider_lancens.spark.commit.single_version_commit import LeasedCommits

_log = logging.getLogger(__name__)


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
    """Fragments that the compaction would rewrite."""
    small: int
    """Rewritten fragments that it would merge, each with fewer rows than the target."""
    rows: int
    """Rows of the version, without deleted rows."""
    deleted: int
    is_upper_bound: bool = False
    """Whether `planned` and `small` may be lower, since no compaction was planned."""

    def decide(self, thresholds: Thresholds) -> Decision:
        """Decide whether a compaction is due."""
        share = _share(self.deleted, self.rows + self.deleted)
        least, most = thresholds.min_small_fragments, thresholds.max_deleted_share
        small = f"at most {self.small}" if self.is_upper_bound else self.small
        reason = (
            f"{small} of {self.fragments} fragments are small and can be merged"
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
    """Rows of the version, without deleted rows."""
    present: str | None = None
    """The type of the existing index of that name, with its columns if they differ; None if there is none."""
    indexed: int = 0
    """Rows that the index covers."""
    segments: int = 0
    bytes: int = 0
    lacks_column: bool = False
    """Whether the column of the index no longer exists; then nothing else is known of what is in it."""
    lacks_files: bool = False
    """Whether the storage has lost files of the index; then nothing else is known of what is in it."""
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

    @property
    def is_unusable(self) -> bool:
        """Whether reads that use the index fail."""
        return self.lacks_column or self.lacks_files

    def decide(self, thresholds: Thresholds) -> Decision:
        """Decide whether the index is due to be built or extended."""
        if not self.rows:
            return Decision(False, "the table has no rows")
        if self.present is None:
            return Decision(True, "the index does not exist")
        if fault := self._fault():
            return Decision(True, fault, rebuild=True)
        most = thresholds.max_deleted_share
        if _exceeds(self.deleted_share, most or 0):
            deleted = f"{self.deleted_share:.1%} of the rows in the index are deleted"
            return Decision(True, f"{deleted}{_set('max_deleted_share', most)}", rebuild=True)
        most = thresholds.max_unindexed_share
        share = _share(max(self.rows - self.indexed, 0), self.rows)
        reason = f"{share:.1%} of {self.rows:,} rows are not indexed{_set('max_unindexed_share', most)}"
        return Decision(_exceeds(share, most or 0), reason)

    def _fault(self) -> str | None:
        """Return why the index can't be extended, as far as that doesn't depend on thresholds."""
        if self.lacks_column:
            return "the index is on a column that no longer exists"
        if not self.is_of_type:
            return f"the index is {self.present}, not {self.spec.index_type}"
        if self.lacks_files:
            return "files of the index are lost"
        if self.misses_rows:
            return "the index doesn't find rows that it claims to cover"
        return "the index may find rows by values that they had before" if self.has_old_values else None

    def decide_after_compaction(self, thresholds: Thresholds) -> Decision:
        """Decide where Spark has just compacted, and is running anyway: the index has to cover all rows."""
        return self.decide(replace(thresholds, max_unindexed_share=None))


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions a clean-up keeps, beside tagged versions: the newest and the recently replaced versions.

    The age of a version counts from the commit that replaced it as the newest one, not from its own, as
    Lance's does: a reader that opened the newest version of a table has the whole time, however old that
    version was.
    """

    older_than: timedelta
    keep_versions: int

    def removable(self, stored: Mapping[int, Manifest], newest: int, now: datetime) -> dict[int, timedelta]:
        """Return the versions that may be removed unless they are tagged, and their ages.

        Args:
            stored: the manifests at the table's location.
            newest: the table's newest version.
            now: the time by the storage's clock.
        """
        history = sorted(version for version in stored if version <= newest)
        replaced = {version: stored[later].modified_millis or 0 for version, later in pairwise(history)}
        ages = {
            version: now - datetime.fromtimestamp(replaced[version] / 1000, UTC)
            for version in history[: -self.keep_versions]
        }
        return {version: age for version, age in ages.items() if age >= self.older_than}


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


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """A table, and its opened dataset."""

    target: ResolvedTable
    dataset: LanceDataset
    """Opened at the newest version; commits through it go to the version authority, and only while the lease
    is held. After a commit it is at the version that the commit made."""
    version: int
    """The version that it was opened at."""
    lease: WriteLease
    _commits: LeasedCommits = field(repr=False)

    @property
    def previous_version(self) -> int:
        """The version before the last commits that no commit of others divides; the newest if there are none.

        Lance makes several versions of a compaction, and rebases all of them on what others commit meanwhile.
        """
        version = int(self.dataset.version)
        while version in self._commits.made:
            version -= 1
        return version

    def at_newest(self) -> Self:
        """Return the table opened at the version that is newest now."""
        version = self.target.latest_version() or self.version
        return replace(self, dataset=self.dataset.checkout_version(version), version=version)

    @contextlib.contextmanager
    def removing_versions(self) -> Iterator[None]:
        """Let Lance find missing what was removed, rather than fail by the version authority's error.

        To remove versions, Lance opens the version at which each branch begins, unless it is gone. A clean-up
        removes it if the branch needs none of its files, such as a version without rows.
        """
        self._commits.removed_at = self.target.dataset.manifests
        try:
            yield
        finally:
            self._commits.removed_at = None

    @contextlib.contextmanager
    def committing(self, operation: str, check_base: Callable[[int], object] | None = None) -> Iterator[None]:
        """Convert Lance's errors of a commit to the specification's errors, and report it to an observer.

        Args:
            operation: what is committed, as a result says it.
            check_base: called with the version that the commit follows, each time that Lance tries to make
                it; raises an error to refuse it.

        Raises:
            ConcurrentModificationError: (14) it conflicts with another commit, or a clean-up considered this
                job dead; nothing was committed.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
            ServiceUnavailableError: (17) the storage or the metastore failed; the commit may have been made.
        """
        observed = ObservedCommit.begin(self.target, operation)
        self._commits.check_base = check_base
        try:
            with panics_as_errors():
                yield
            observed.made()
        except LANCE_ERRORS as error:
            refusal = self._commits.error_of(error) if self._commits.has_failed else None
            is_refused = isinstance(refusal, spec_errors.ConcurrentModificationError)
            observed.lost(is_conflict=is_refused or is_conflict(error), is_repeated=False)
            if not is_conflict(error):
                if refusal is None:
                    raise  # an error of the storage, which `storage_failures` converts
                raise refusal from None
            raise spec_errors.ConcurrentModificationError(
                f"table {self.target.id}: other writers changed what this is based on since version "
                f"{self.version}; nothing was committed, run it again ({error})"
            ) from error


@contextlib.contextmanager
def maintained(target: ResolvedTable) -> Iterator[MaintainedTable]:
    """Open a table for maintenance.

    Raises:
        TableVersionNotFoundError: (11) nothing was written to it yet.
        ConcurrentModificationError: (14) others committed, and cleaned up, while it was being opened.
        InvalidTableStateError: (19) the metastore decides its versions, and a direct writer bypassed it.
    """
    from airflow_provider_lancens.spark.commit.single_version_commit import LeasedCommits

    newest = _newest(target)
    with acquire_lease(target.dataset).kept_alive(end=True) as lease:
        commits = LeasedCommits(target.versions, lease)
        # A version authority for storage-managed tables too: otherwise Lance would rebase the commit of a
        # suspended driver, regardless of a clean-up's removals.
        dataset = replace(target.dataset, version_authority=VersionAuthority(commits, target.id.parts))
        opened = _opened(target, dataset, newest)
        yield MaintainedTable(target, opened, int(newest.version), lease, commits)


def _opened(target: ResolvedTable, dataset: DatasetRef, newest: TableVersion) -> LanceDataset:
    version = int(newest.version)
    try:
        return dataset.open(version, known=newest)
    except ValueError as error:
        if target.latest_version() == version:
            raise
        raise spec_errors.ConcurrentModificationError(
            f"table {target.id}: version {version} was replaced and cleaned up while it was being opened; "
            "nothing was changed, run it again"
        ) from error


def _newest(target: ResolvedTable) -> TableVersion:
    """Return the newest version of a table that something was written to.

    Raises:
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidTableStateError: (19) the metastore decides its versions, and a direct writer bypassed it.
    """
    newest = target.newest_version()
    if newest is None:
        raise target.nothing_written()
    target.check_not_bypassed(int(newest.version))
    return newest


COMPUTED = "lancens.computed"
"""Metadata of columns whose values may be rewritten in place."""


_CHECKS_VALUES = frozenset({"BTREE", "NGRAM", "ZONEMAP", "BLOOMFILTER"})
"""Types of indices by whose old values Lance doesn't find a row that was moved."""


def may_have_old_values(
    dataset: LanceDataset, spec: IndexSpec, segments: Sequence[Any], missing: Iterable[LanceFragment]
) -> bool:
    """Return whether segments of an index may have other values of rows that another segment is to cover.

    Args:
        dataset: the dataset.
        spec: the index.
        segments: its segments, as Lance describes them.
        missing: the fragments that no segment covers.
    """
    if spec.index_type not in _CHECKS_VALUES and _were_moved(dataset, segments, missing):
        return True
    return _is_rewritten(dataset, spec.column, segments)


def has_old_values(dataset: LanceDataset, index: Any) -> bool:
    """Return whether another segment of an index covers rows that an older one may have with other values.

    Queries then find such rows by their old values too; of a vector index they don't. This package never
    extends an index so, but pylance's ``optimize_indices(num_indices_to_merge=0)`` does. Where another client
    has merged the segments since, this is unknown.

    Args:
        dataset: the dataset.
        index: the index, as Lance describes it.
    """
    segments, fragments = (
        index.segments,
        {fragment.fragment_id: fragment for fragment in dataset.get_fragments()},
    )
    built = {segment.dataset_version_at_last_update for segment in segments}
    if len(built) < 2:
        return False
    kind = index.index_type.replace("_", "").upper()
    if kind not in _CHECKS_VALUES and not kind.startswith("IVF"):
        for segment in segments:
            older = [built_at for built_at in built if built_at < segment.dataset_version_at_last_update]
            covered = [fragments[number] for number in segment.fragment_ids if number in fragments]
            if were_updated(dataset, covered, older):
                return True
    return all(
        name in dataset.schema.names and _is_rewritten(dataset, name, segments) for name in index.field_names
    )


def _were_moved(dataset: LanceDataset, segments: Sequence[Any], missing: Iterable[LanceFragment]) -> bool:
    """Return whether rows that no segment covers are older than a segment, which then may have them."""
    newest = max(segment.dataset_version_at_last_update for segment in segments)
    return any(version <= newest for version in versions_of_rows(dataset, missing))


def _is_rewritten(dataset: LanceDataset, column: str, segments: Sequence[Any]) -> bool:
    """Return whether a column may have been rewritten since the oldest segment of an index was built."""
    ids = frozenset(_ids(dataset.lance_schema.field(column)))
    is_marked = COMPUTED.encode() in (dataset.schema.field(column).metadata or {})
    if not is_marked and not _is_in_own_files(dataset, ids):
        return False
    # A compaction replaces segments, but keeps this version.
    built = min(segment.dataset_version_at_last_update for segment in segments)
    return any(_rewrites(transaction, ids) for _, transaction in transactions(dataset, built))


def _rewrites(transaction: Transaction | None, ids: frozenset[int]) -> bool:
    if transaction is None:  # of a version that was cleaned up
        return True
    operation: Any = transaction.operation
    modified = getattr(operation, "fields_modified", None) or ()
    return not ids.isdisjoint(modified) or type(operation).__name__ == "DataReplacement"


def _is_in_own_files(dataset: LanceDataset, ids: frozenset[int]) -> bool:
    """Return whether a fragment has the column in another file than the file that it was made with."""
    return any(
        not ids.isdisjoint(file.fields)
        for fragment in dataset.get_fragments()
        for file in fragment.metadata.files[1:]
    )


def _ids(field: Any) -> Iterator[int]:
    yield field.id()
    for child in field.children():
        yield from _ids(child)


_TARGET_ROWS = 1024 * 1024
"""Lance's default."""
_MAX_PLANNED = 1000
"""A plan of more fragments is made only if a compaction may be due: it names each of them, which takes twenty
times as long as counting them."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at its newest version."""

    target: ResolvedTable
    dataset: LanceDataset
    version: int
    segments: StoredSegments = field(repr=False)

    @property
    def table(self) -> str:
        """The table's identifier."""
        return str(self.target.id)

    def fragmentation(self, options: CompactionOptions) -> Fragmentation:
        """Return the effect of a compaction, by the manifest alone."""
        return self._planned(options, self._counts(options))

    def _planned(self, options: CompactionOptions, counts: DatasetStats) -> Fragmentation:
        tasks = [task.fragments for task in plan_compaction(self.dataset, options).tasks]
        merged = [fragment for task in tasks if len(task) > 1 for fragment in task]
        target = options.target_rows_per_fragment or _TARGET_ROWS
        return Fragmentation(
            fragments=counts["num_fragments"],
            planned=sum(map(len, tasks)),
            small=sum(fragment.num_rows < target for fragment in merged),
            rows=self.dataset.count_rows(),
            deleted=counts["num_deleted_rows"],
        )

    def _counts(self, options: CompactionOptions) -> DatasetStats:
        """Count the fragments, the small ones and the deleted rows, by one call, unlike their metadata."""
        return self.dataset.stats.dataset_stats(options.target_rows_per_fragment or _TARGET_ROWS)

    def coverage(self, spec: IndexSpec) -> Coverage:
        """Return how much of the table an index covers, by metadata and a listing of its files."""
        rows = self.dataset.count_rows()
        found = described_index(self.dataset, spec.name)
        if found is None:
            return Coverage(spec, rows)
        elsewhere = "" if found.field_names == [spec.column] else f" on {', '.join(found.field_names)}"
        coverage = Coverage(
            spec=spec,
            rows=rows,
            present=f"{found.index_type}{elsewhere}",
            indexed=found.num_rows_indexed,
            segments=len(found.segments),
            bytes=found.total_size_bytes or 0,
            lacks_column=lacks_column(self.dataset, found),
            lacks_files=bool(self.segments.incomplete(self.dataset, found)),
        )
        if coverage.is_unusable:
            return coverage
        return replace(
            coverage,
            misses_rows=misses_rows(self.dataset, found.segments),
            has_old_values=has_old_values(self.dataset, found),
            deleted_share=deleted_share(self.dataset, found),
        )

    def indices_of_no_column(self) -> list[str]:
        """Return the names of the indices whose column no longer exists."""
        return [index.name for index in self.dataset.describe_indices() if lacks_column(self.dataset, index)]

    def old_versions(self, older_than: timedelta, keep_versions: int) -> OldVersions:
        """Return the versions that a clean-up would remove, by the times of the manifests: one listing.

        Tags and branches are only read if there are such versions.
        """
        manifests = Manifests(self.target.dataset.location, self.target.dataset.storage_options).all()
        ages = Retention(older_than, keep_versions).removable(manifests, self.version, datetime.now(UTC))
        kept = self._referenced() if ages else set()
        delays = [age - older_than for version, age in ages.items() if version not in kept]
        return OldVersions(len(delays), max(delays, default=timedelta(0)))

    def _referenced(self) -> set[int]:
        overdue = overdue_bookmarks(self.dataset, self.target.dataset.manifests, datetime.now(UTC))
        return referenced_versions(self.dataset, {bookmark.name for bookmark in overdue})

    def decide_compaction(self, options: CompactionOptions, thresholds: Thresholds) -> Decision:
        """Decide whether a compaction is due, and log it."""
        counts = self._counts(options)
        bound = self._upper_bound(counts)
        decision = None if bound is None else bound.decide(thresholds)
        if decision is None or decision.is_due:
            decision = self._planned(options, counts).decide(thresholds)
        return self._logged("compaction", decision)

    def _upper_bound(self, counts: DatasetStats) -> Fragmentation | None:
        """Return what a compaction would do at most, for many fragments; None if they have to be planned.

        Lance counts all rows of a fragment, a plan only the rows that aren't deleted.
        """
        fragments, small = counts["num_fragments"], counts["num_small_files"]
        if fragments <= _MAX_PLANNED or counts["num_deleted_rows"]:
            return None
        return Fragmentation(fragments, small, small, self.dataset.count_rows(), 0, is_upper_bound=True)

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
    """Return the versions that branches keep, and tags with other names than these."""
    tags = list_tags(dataset).items()
    branches = list_branches(dataset).values()
    tagged = {int(tag["version"]) for name, tag in tags if name not in but}
    return tagged | {branch["parent_version"] for branch in branches}


def plan_compaction(dataset: LanceDataset, options: CompactionOptions) -> CompactionPlan:
    """Plan which fragments to rewrite, by the manifest alone."""
    from lance.optimize import Compaction
    from lance.optimize import CompactionOptions as LanceOptions

    settings: dict[str, Any] = options.as_lance()
    # A Lance that can write other formats takes the format that the table's configuration names, and others
    # may read this table with an older Lance. A Lance that doesn't know the option keeps the format.
    if "data_storage_version" in LanceOptions.__annotations__:
        settings["data_storage_version"] = dataset.data_storage_version
    return Compaction.plan(dataset, cast("Any", settings))


def stored_segments(target: ResolvedTable) -> StoredSegments:
    """Return what the storage has of the indices of a table."""
    return StoredSegments(target.dataset.location, target.dataset.storage_options)


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
        yield state_of(target)


def state_of(target: ResolvedTable) -> TableState:
    """Open a table to read its state.

    Raises:
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidTableStateError: (19) the metastore decides its versions, and a direct writer bypassed it.
    """
    newest = _newest(target)
    version = int(newest.version)
    return TableState(target, target.open(version, newest), version, stored_segments(target))
