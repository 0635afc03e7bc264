"""Results of operations on tables, with common fields. Plain data: imports nothing heavy."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias

from airflow_provider_lancens.formatting import format_count, format_rate, format_size

Outcome: TypeAlias = Literal["done", "found", "skipped", "unchanged", "staged", "planned"]
"""What a call did: ``done``, this call did it; ``found``, an earlier try of this execution did; ``skipped``,
another execution did under the same key, and `on_existing_key` says to write nothing; ``unchanged``, there
was nothing to do; ``staged``, this call staged it; ``planned``, a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of a call that may change a table; its mapping is the XCom of a task."""

    table: str
    """Identifier, such as ``db$table``."""
    operation: str
    """The verb, such as ``append``."""
    outcome: Outcome
    """See `Outcome`."""
    version: int | None
    """The version with the effect; None if it is only staged, or the table has none."""
    previous_version: int | None
    """The version that `version` follows; the same if nothing changed, None if the table had none."""
    seconds: float
    """Wall-clock time of the call."""
    reason: str = ""
    """Why it was done or not; may be empty."""

    newest_version: int | None = field(default=None, compare=False)
    """The table's version when an earlier commit was found; None if none was, or it isn't known."""
    location: str | None = field(default=None, compare=False)
    """The root of the table's dataset, which tells two tables of one name apart; None if it isn't known."""

    _hidden: ClassVar[frozenset[str]] = frozenset({"newest_version"})
    """Fields that aren't part of the XCom."""

    @property
    def is_done(self) -> bool:
        """Whether this call changed the table."""
        return self.outcome == "done"

    @property
    def is_outdated(self) -> bool:
        """Whether it is of a write that was skipped, and others have committed since."""
        newest, skipped = self.newest_version, self.outcome == "skipped"
        return skipped and None not in (newest, self.version) and (newest or 0) > (self.version or 0)

    @property
    def event(self) -> dict[str, Any]:
        """Further fields of the asset event's extra, besides the table and the versions."""
        location = {} if self.location is None else {"location": _plain(self.location)}
        return {"operation": self.operation, **self._details, **location}

    @property
    def _details(self) -> Mapping[str, Any]:
        """Fields of an event that only results of this kind have."""
        return {}

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        values = {name: value for name, value in asdict(self).items() if name not in self._hidden}
        return {name: _plain(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogResult:
    """Result of a call that changes the entry of a table or a database; its mapping is the XCom of a task."""

    operation: str
    """The verb, such as ``drop_table``."""
    outcome: Outcome
    """``done``, ``unchanged`` or ``planned``, see `Outcome`."""
    table: str | None = None
    """Identifier of the table, such as ``db$table``; None if it is a database."""
    location: str | None = None
    """The root of the table's dataset; None if there is no such table."""
    namespace: str | None = None
    """Identifier of the database; None if it is a table."""
    plan: Mapping[str, Any] | None = None
    """What a cascade drops, or a dry run of a drop would; None without one."""

    @property
    def is_done(self) -> bool:
        """Whether this call changed the entry."""
        return self.outcome == "done"

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        of: dict[str, Any] = {"namespace": self.namespace}
        if self.table is not None:
            of = {"table": self.table, "location": self.location}
        plan = {} if self.plan is None else {"plan": dict(self.plan)}
        return {**of, **plan, "operation": self.operation, "outcome": self.outcome}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(element) for name, element in value.items()}
    if isinstance(value, str):
        return str(value)  # Airflow encodes text of no other type, such as `Location`
    return [_plain(element) for element in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsResult(Result):
    """Result of a call that changes rows."""

    inserted: int = 0
    """The rows that were added."""
    updated: int = 0
    """The rows of the table that an upsert replaced."""
    deleted: int = 0
    """The rows of the table that were removed: by a deletion, an overwrite, ``delete_when`` of an upsert, or
    an append that was made again. 0 also if an earlier commit doesn't say it."""
    files: int = 0
    """The data files that were written; of a deletion, the fragments that had its rows."""
    bytes: int = 0
    """The size of the data files."""

    @property
    def written(self) -> int:
        """The rows that were written."""
        return self.inserted + self.updated

    @property
    def _details(self) -> Mapping[str, Any]:
        return self.changes

    @property
    def changes(self) -> dict[str, int]:
        """The rows that were inserted, updated and deleted."""
        return {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}

    @property
    def _of_table(self) -> str:
        """The rows of the table that were changed, as the log says it."""
        changed = {"updated": self.updated, "deleted": self.deleted}
        return "".join(f", {count:,} {name}" for name, count in changed.items() if count)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult(RowsResult):
    """Result of a write.

    If it was found or skipped, everything but `outcome`, `seconds` and `reason` describes the earlier commit.
    """

    key: str | None = None
    """What identifies the write; None without a key."""
    staged_version: str | None = None
    """The staged version, such as ``staged-9223372036854775809``, until it is published; else None."""

    def __str__(self) -> str:
        table = f"table {self.table}"
        if self.outcome == "unchanged":
            return f"{table}: nothing to commit, at version {self.version}"
        where = self.staged_version or f"version {self.version}"
        if self.outcome == "skipped":
            now = "" if self.newest_version is None else f"; the table is at version {self.newest_version}"
            return f"{table}: skipped, {where} was committed before ({self._size}){now}"
        did = "committed" if self.staged_version is None else "staged"
        if self.outcome == "found":
            return f"{table}: an earlier try has {did} {where} ({self._size})"
        fast = format_rate(self.written, self.seconds)
        return f"{table}: {did} {where} with {self._size} in {self.seconds:.1f} s{fast}"

    @property
    def _size(self) -> str:
        files = f"{format_count(self.files, 'file')}, {format_size(self.bytes)}"
        return f"{format_count(self.written, 'row')}, {files}{self._of_table}"


@dataclass(frozen=True, slots=True)
class UndoneCommit:
    """A commit that a restore undoes."""

    version: int
    operation: str
    """What it did, such as ``append``; empty if its version was cleaned up and had no recorded key."""
    key: str | None
    """The key under which to write its rows again; None if it had none, or that isn't known any more."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    """The rows that it changed; 0 if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult(WriteResult):
    """Result of a restore: an older version that was made the newest again."""

    restored_version: int | None
    """The older version that it restores; None if an earlier run did and its commit was cleaned up."""
    undone: tuple[UndoneCommit, ...] = ()
    """The commits in between; in a dry run, the commits that the restore would undo."""

    @property
    def _details(self) -> Mapping[str, Any]:
        return {"restored_version": self.restored_version}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult(RowsResult):
    """Result of a run of a streaming query. Its version is None if nothing has been written to the table."""

    epochs: int
    """Number of micro-batches that this run processed, also if an interrupted run had committed them."""

    def __str__(self) -> str:
        wrote = (
            f"{format_count(self.epochs, 'epoch')} with {format_count(self.written, 'row')}{self._of_table}"
        )
        return f"table {self.table}: {wrote} committed up to version {self.version} in {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaResult(Result):
    """Result of a change of a table's columns."""

    columns: tuple[str, ...]
    """The columns that this call changed, by their names afterwards."""
    dropped_indices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeResult(Result):
    """Result of computing a column."""

    column: str
    computed: int
    """The number of computed values."""
    nulls: int
    """How many rows of the changed fragments have no value: the function returned null for them."""
    files: int
    """The number of written files, one for each changed fragment."""
    bytes: int
    """The size of the written files."""
    commits: int
    """The number of versions that it made, including the version that added the column."""

    @property
    def written(self) -> int:
        """The values that were written."""
        return self.computed

    def __str__(self) -> str:
        what = f"table {self.table}: column {self.column}"
        if not self.is_done:
            return f"{what}: nothing to compute, still at version {self.version}"
        return (
            f"{what}: computed {format_count(self.computed, 'row')} in "
            f"{format_count(self.files, 'fragment')}, {format_size(self.bytes)}, in "
            f"{format_count(self.commits, 'version')} up to {self.version} in "
            f"{self.seconds:.1f} s{format_rate(self.computed, self.seconds)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult(Result):
    """Result of a compaction; `previous_version` is the version whose fragments it rewrote."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    """No longer part of the newest version; they are deleted once no version needs them."""
    files_added: int = 0
    tasks: int = 0
    """Number of Spark tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexResult(Result):
    """An index of a table; `previous_version` is the version whose rows are in it."""

    index: str
    """The name of the index."""
    column: str
    index_type: str
    rows: int
    """Rows that the index covers; later rows are searched without it."""
    segments: int
    """Segments that a query searches, one after the other."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireResult(Result):
    """Result of removing old versions, or of its dry run; `version` is the newest one, which is kept."""

    versions: int = 0
    """Number of removed versions."""
    files: int = 0
    """Number of data, deletion and index files removed with them."""
    bytes: int = 0
    """Total size of all removed files."""
    kept_by_tag: int = 0
    """Older versions that a tag keeps."""
    expired_keys: int = 0
    """Number of idempotency keys that expired by `keys_older_than`."""
    expired_bookmarks: tuple[str, ...] = ()
    """Names of the bookmarks that weren't moved in time, and whose versions aren't kept any more."""
    clones: tuple[str, ...] = ()
    """Identifiers of the shallow clones for which files of old versions were kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansResult(Result):
    """Result of removing files that no version refers to and no running write needs, or of its dry run."""

    files: int = 0
    bytes: int = 0
    unfenced: int = 0
    """Writes that seem dead, but whose files are kept: a table without a version can't fence them off."""
    clones: tuple[str, ...] = ()
    """Identifiers of the shallow clones for which such files were kept."""
    paths: tuple[str, ...] = ()
    """The files, relative to the table's location; not part of the XCom."""

    _hidden: ClassVar[frozenset[str]] = frozenset({"newest_version", "paths"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceResult(Result):
    """Result of the maintenance of a table; its decisions are based on `previous_version`."""

    steps: Mapping[str, Result]
    """The results by step: ``compact``, ``index.<name>``, ``expire``, and ``orphans`` if it was asked for and
    due. Each `reason` says what was found."""

    @property
    def done_steps(self) -> list[str]:
        """The names of the steps that changed the table."""
        return [name for name, step in self.steps.items() if step.is_done]

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        left_out = {*self._hidden, "steps"}
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in left_out}
        return {**_plain(values), "steps": {name: step.as_dict() for name, step in self.steps.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseResult(Result):
    """Result of a release: its table and versions are the release set's."""

    key: str | None
    """What identifies the release; None without a key."""
    tables: Mapping[str, int]
    """The released version by table."""

    @property
    def _details(self) -> Mapping[str, Any]:
        return {"tables": dict(self.tables)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult(Result):
    """Result of a check of a table: ``done`` if the catalog adopted the storage's version."""

    verdict: str
    """``consistent``, or what is wrong, see `LanceCheckTableOperator`."""
    catalog_version: int | None
    """The version that the catalog has; None if the storage decides."""
    storage_version: int | None
    """The newest version of the storage; None if nothing was written yet."""
    checked: int
    """Number of versions whose files were checked."""
    missing_files: Mapping[int, tuple[str, ...]]
    """The missing paths by version, relative to the table's location."""
    complete_version: int | None
    """The newest version that lacks no file; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessResult(Result):
    """Age of the newest data of a table; `version` is the newest version that changed rows or columns.

    If only commits of maintenance are kept, it is the oldest of these, and the data are older.
    """

    updated_at: str | None
    """When that version was committed, by the clock of its writer, in ISO 8601; None without data."""
    age_seconds: float | None
    """How long ago that was; None without data."""
    max_age_seconds: float | None
    """Maximum age of the data; None if it isn't set."""
    is_late: bool
    """Whether they are older, or there are none."""


def changes_nothing(outcome: Outcome) -> bool:
    """Return whether a call with this outcome made no version, so that its result has the newest one."""
    return outcome in ("unchanged", "planned")


def versions_of_steps(steps: Collection[Result]) -> tuple[int, int]:
    """Return the version before the first commit of a call's steps, and that of the last one.

    Others may commit before, between and after the steps: the versions of a step that committed nothing are
    others'. If no step committed, both are the newest version.
    """
    all_versions = [(step.previous_version or 0, step.version or 0) for step in steps]
    committed = [(previous, version) for previous, version in all_versions if previous < version]
    if not committed:
        newest = max(version for _, version in all_versions)
        return newest, newest
    return min(committed)[0], max(version for _, version in committed)


def elapsed(started: float) -> float:
    """Return the seconds since a call began, by the monotonic clock, as results have them."""
    return round(time.monotonic() - started, 3)
