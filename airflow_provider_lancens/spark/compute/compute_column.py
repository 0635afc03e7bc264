"""Compute a column by a Python function on Spark's executors, and commit it in steps."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.conditions import Condition, is_null, parse_condition
from airflow_provider_lancens.formatting import format_count, format_size
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.blobs import inner_blob, is_blob
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits, SchemaStep
from airflow_provider_lancens.spark.commit.table_change import CommitStep, TableChange
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.compute.column_task import (
    ColumnFile,
    ColumnFunction,
    ColumnFunctionError,
    ColumnLayout,
    ColumnRequest,
    ColumnTask,
    Function,
    FunctionFailure,
    TaskAnswer,
    TypeTask,
    field_ids,
    read_file_info,
)
from airflow_provider_lancens.spark.execution import includes_computation
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite, unique_key
from airflow_provider_lancens.spark.maintenance.parallel_tasks import (
    ParallelTasks,
    Spark,
    run_in_parallel,
    tasks_at_once,
)
from airflow_provider_lancens.spark.maintenance.table_state import COMPUTED
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.options import DEFAULT_BATCH_ROWS, check_sizes
from airflow_provider_lancens.spark.results import ComputeResult, elapsed
from airflow_provider_lancens.spark.table.column_fit import check_columns
from airflow_provider_lancens.spark.table.column_history import match_columns
from airflow_provider_lancens.spark.table.history import was_restored
from airflow_provider_lancens.spark.table.opened_version import parse_filter
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table
from airflow_provider_lancens.spark.type_names import parse_type
from airflow_provider_lancens.spark.write.task_progress import WriteProgress

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from pyspark.sql import SparkSession

_OPERATION = "compute_column"
_log = logging.getLogger(__name__)


class FragmentsReplacedError(Exception):
    """Other commits have rewritten all of these fragments, or changed what their values depend on."""


@dataclass(frozen=True, slots=True)
class ColumnUpdate(TableChange):
    """Put written files into their fragments, unless others have rewritten these meanwhile."""

    layout: ColumnLayout
    files: Sequence[ColumnFile] = field(repr=False)
    known: LanceDataset = field(repr=False)
    """The dataset at a version that has the column whose values the files have."""
    applied: list[ColumnFile] = field(default_factory=list, repr=False)
    """The files among them that the last step has."""

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: what others deleted stays deleted, what they rewrote is left out.

        A fragment is left out, too, if a restore has brought rows back of which its file has no values.

        Raises:
            FragmentsReplacedError: nothing is left to commit, or the column must be marked as computed again.
        """
        from lance import LanceOperation

        if latest is None:
            raise self._conflict("its dataset was removed")
        column = self.layout.field
        # Ids alone aren't enough: an added column gets the id of a dropped one.
        if field_ids(latest, column.name) != self.layout.ids or latest.schema.field(column.name) != column:
            raise self._conflict(f"version {latest.version} changed column {column.name!r}")
        if not is_same_column(self.known, latest, column.name):
            raise self._conflict(f"column {column.name!r} was dropped, and another one of its name added")
        if not is_marked(latest, column.name):  # a restore has undone the mark
            raise FragmentsReplacedError
        present = {fragment.fragment_id: fragment for fragment in latest.get_fragments()}
        self.applied[:] = [file for file in self.files if file.applies_to(present.get(file.fragment))]
        if not self.applied:
            raise FragmentsReplacedError
        ids = self.layout.ids
        bitmaps = {file.fragment: file.offsets for file in self.applied if file.offsets is not None}
        update = LanceOperation.Update(
            updated_fragments=[
                file.applied_to(present[file.fragment].metadata, ids) for file in self.applied
            ],
            # The column with its parents, so that Lance no longer uses their indices for these fragments.
            fields_modified=list(ids),
            update_mode="rewrite_columns",
            updated_fragment_offsets=bitmaps or None,
        )
        return CommitStep(update, latest.version, counts_of(self.applied))


def counts_of(files: Sequence[ColumnFile]) -> Counts:
    """Return the counts of written files."""
    size = sum(file.file.file_size_bytes or 0 for file in files)
    return Counts(sum(file.rows for file in files), len(files), size)


def commit_columns(target: ResolvedTable, lease: WriteLease, update: ColumnUpdate) -> int | None:
    """Commit the part of an update that commits of others don't replace, as exactly one version.

    Returns:
        The version; None if nothing is left. `ColumnUpdate.applied` has what it contains.

    Raises:
        ConcurrentModificationError: (14) others changed the column itself, or every attempt lost.
    """
    try:
        outcome = Committer(target, KeyedWrite(unique_key()), Counts(), lease=lease).commit(update)
    except FragmentsReplacedError:
        return None
    return outcome.commit.version


def is_same_column(known: LanceDataset, latest: LanceDataset, column: str) -> bool:
    """Return whether a column of a version is the same in a later one: a new one may have its name and id."""
    if known.version == latest.version:
        return True
    found = match_columns(latest, known)
    return column in found.unknown or found.names.get(column) == column


def add_null_column(commits: SchemaCommits, latest: LanceDataset, column: pa.Field) -> LanceDataset:
    """Add a column of nulls, which costs no file, unless there is one of this name.

    Args:
        commits: makes the commit.
        latest: the dataset at its newest version.
        column: the column, which may be null.

    Returns:
        The dataset at a version that has the column.
    """
    marked = column.with_metadata({COMPUTED: "true"})
    step = SchemaStep(f"adds {column.name} ({column.type})", lambda opened: opened.add_columns(marked))
    added = commits.run(lambda newest: None if column.name in newest.schema.names else step, latest)
    commits.target.update_catalog_columns(added.schema)
    return added


def is_marked(dataset: LanceDataset, column: str) -> bool:
    """Return whether `mark_computed` has noted that the column's values may be rewritten in place."""
    return COMPUTED.encode() in (dataset.schema.field(column).metadata or {})


def mark_computed(commits: SchemaCommits, latest: LanceDataset, column: str) -> LanceDataset:
    """Note in a column's metadata that its values may be rewritten in place, unless that is noted.

    Its indices aren't extended then before it was checked that they have no old values.
    """
    note: dict[str, dict[str, str | None]] = {column: {COMPUTED: "true"}}
    step = SchemaStep(f"marks {column} as computed", lambda opened: opened.update_field_metadata(note))

    def next_step(newest: LanceDataset) -> SchemaStep | None:
        return None if is_marked(newest, column) else step

    return commits.run(next_step, latest)


_SECONDS = 60.0
"""Finished fragments are committed after this time, even if they are fewer than `commit_every`."""
_ROUNDS = 20
"""Maximum number of consecutive preemptions before a run fails."""
_SHARE = 4
_Answered: TypeAlias = tuple[int, TaskAnswer[ColumnFile]]
"""What a task found, with the id of its fragment."""


@dataclass(slots=True)
class ColumnRun:
    """One run over a table."""

    target: ResolvedTable
    lease: WriteLease
    request: ColumnRequest
    fills_nulls: bool
    """Whether the rows that have no value are to be computed, and no condition is given."""
    commit_every: int | None
    max_tasks: int | None
    latest: LanceDataset
    """The dataset at the newest version that the run knows of."""
    known: LanceDataset
    """The dataset at the newest version of which is known that it has the column of the request."""
    versions: list[int]
    """The versions that it made."""
    files: list[ColumnFile] = field(default_factory=list)
    """The files that it committed."""

    def run(self, spark: Callable[[], SparkSession]) -> None:
        """Compute all fragments that are left.

        Args:
            spark: returns the session, called only if there is work.

        Raises:
            ColumnFunctionError: the function raised an exception; what was finished is committed.
            InvalidInputError: (13) the function returned something invalid.
            ConcurrentModificationError: (14) other commits kept rewriting the fragments.
        """
        preemptions = 0
        while left := fragments_left(self):
            again = frozenset(left)  # files of these fragments were undone by others
            self.files = [file for file in self.files if file.fragment not in again]
            self._mark()
            before = len(self.versions)
            if not _Round(self, spark(), deque(left)).run():
                return
            preemptions = 0 if len(self.versions) > before else preemptions + 1
            if preemptions == _ROUNDS:
                raise spec_errors.ConcurrentModificationError(
                    f"table {self.target.id}: other commits rewrote its fragments {_ROUNDS} times while "
                    f"column {self._column!r} was computed for them; run it again once they have ended"
                )
            _log.info("table %s: fragments were rewritten meanwhile; planning them anew", self.target.id)
            self.latest = self.target.open_latest() or self.latest

    def commit(self, files: Collection[ColumnFile]) -> bool:
        """Commit finished files; return whether others have neither preempted any nor undone earlier ones."""
        layout, base = self.request.layout, self.latest
        update = ColumnUpdate(
            table=str(self.target.id),
            base=base.version,
            schema=base.schema,
            fragments=[],
            layout=layout,
            files=tuple(files),
            known=self.known,
        )
        version = commit_columns(self.target, self.lease, update)
        if version is None:
            return False
        self.latest = self.known = self.target.open(version)
        self.versions.append(version)
        is_undone = bool(self.files) and was_restored(self.latest, base.version, version - 1)
        self.files += update.applied
        return len(update.applied) == len(files) and not is_undone

    def failed(self, fragment: int, failure: FunctionFailure) -> Exception:
        """Return the error to raise if the function failed."""
        done = f"; {len(self.files)} fragments are committed" if self.files else ""
        text = (
            f"table {self.target.id}: column {self._column!r}: the function failed on fragment {fragment}: "
            f"{failure.message}{done}"
        )
        return spec_errors.InvalidInputError(text) if failure.is_invalid else ColumnFunctionError(text)

    def _mark(self) -> None:
        commits = SchemaCommits(self.target, _OPERATION)
        self.latest = mark_computed(commits, self.latest, self._column)
        self.versions += commits.versions

    @property
    def _column(self) -> str:
        return str(self.request.layout.field.name)


def fragments_left(run: ColumnRun) -> list[int]:
    """Return the fragments at the newest version that the run hasn't computed, and that may have work.

    Raises:
        UnsupportedOperationError: (0) a fragment has overlays, which would hide the computed values.
    """
    layout, request = run.request.layout, run.request
    present = [fragment.metadata for fragment in run.latest.get_fragments()]
    if any(fragment.overlays for fragment in present):
        raise spec_errors.UnsupportedOperationError(
            f"table {run.target.id}: it has data overlays, which would hide computed values; compact it first"
        )
    own = {file.path for file in run.files}
    files = {fragment.id: layout.file_of(fragment) for fragment in present}
    found = {number: file for number, file in files.items() if file is not None}
    stored = read_file_info(request.dataset, run.latest, list(found.values()))
    done = {name for name, info in stored.items() if run.fills_nulls and info.nulls == 0}
    if request.execution_id and not run.fills_nulls:
        done |= {
            name
            for name, info in stored.items()
            if includes_computation(info.execution_id, request.execution_id)
        }
    return [number for number in files if number not in found or found[number].path not in own | done]


@dataclass(slots=True)
class _Round:
    """The fragments that were left at one version."""

    of: ColumnRun
    session: SparkSession
    queue: deque[int]
    finished: list[ColumnFile] = field(default_factory=list)
    """Written and not yet committed."""
    is_preempted: bool = False
    error: Exception | None = None
    failed: tuple[int, FunctionFailure] | None = None

    def run(self) -> bool:
        """Compute and commit; return whether other commits have preempted some."""
        count, most = len(self.queue), self.of.max_tasks or tasks_at_once(self.session)
        step = self.of.commit_every or max(1, most // _SHARE)
        present = {fragment.fragment_id for fragment in self.of.latest.get_fragments()}
        last = time.monotonic()
        tasks: ParallelTasks[_Answered] = ParallelTasks(self.session, most)
        with tasks:
            while self.queue or tasks.running:
                self._start(tasks, max(most, step), present)
                for task in tasks.finished(_SECONDS):
                    self._take(task)
                is_over = not (self.queue or tasks.running)
                is_due = len(self.finished) >= step or time.monotonic() - last > _SECONDS
                if self.finished and (is_over or is_due):
                    self._commit(count, len(self.queue) + tasks.running)
                    present = {fragment.fragment_id for fragment in self.of.latest.get_fragments()}
                    last = time.monotonic()
        if self.failed is not None:
            raise self.of.failed(*self.failed)
        if self.error is not None:
            raise self.error
        return self.is_preempted

    def _start(self, tasks: ParallelTasks[_Answered], most: int, present: set[int]) -> None:
        # Finished, uncommitted fragments count too, so that a killed run repeats at most `most` fragments.
        while self.queue and tasks.running + len(self.finished) < most and tasks.running < tasks.most:
            fragment = self.queue.popleft()
            if fragment in present:
                tasks.submit(_Numbered(ColumnTask(self.of.request, self.of.latest.version, fragment)))
            else:
                self.is_preempted = True

    def _take(self, done: Future[_Answered]) -> None:
        try:
            fragment, answer = done.result()
        except Exception as error:  # noqa: BLE001 raised later, after finished files are committed
            self.error = self.error or error
        else:
            if answer.result is not None:
                self.finished.append(answer.result)
            if answer.failure is not None:
                self.failed = self.failed or (fragment, answer.failure)
        if self.error or self.failed:
            self.queue.clear()  # running tasks are still committed before the error is raised

    def _commit(self, count: int, left: int) -> None:
        files, self.finished = self.finished, []
        self.is_preempted |= not self.of.commit(files)
        made = counts_of(self.of.files)
        _log.info(
            "table %s: column %s: version %d; %d of %d fragments are left, %s, %s so far",
            self.of.target.id,
            self.of.request.layout.field.name,
            self.of.latest.version,
            left,
            count,
            format_count(made.rows, "row"),
            format_size(made.bytes),
        )


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A task that returns the number of its fragment too. Picklable."""

    task: ColumnTask

    def __call__(self) -> _Answered:
        return self.task.fragment, self.task()


@observed("compute_column")
def compute_column(
    spark: Spark,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    column: str,
    function: Function | str,
    columns: Sequence[str],
    *,
    dtype: str | pa.DataType | None = None,
    setup: Function | str | None = None,
    where: str | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    commit_every: int | None = None,
    max_tasks: int | None = None,
    execution_id: str | None = None,
) -> ComputeResult:
    """Compute a column by a Python function on Spark's executors; no other column is rewritten.

    Each task computes one fragment, and writes a file with this column. The driver commits them in steps, so
    a run that is killed repeats at most as many fragments as tasks run at once. Rows that others append
    meanwhile have no value; the next run computes them. If a compaction rewrites fragments meanwhile, they
    are computed again. Indices on the column no longer cover the changed fragments, until they are extended.

    `spark` is the session, or a function that starts one, called only if there is work. The tries of one run
    that recomputes rows have the same `execution_id`: each skips fragments that another one has committed,
    unless they were compacted since; of several runs of an execution, see `includes_computation`. See
    `Table.compute_column` for the other arguments and errors.

    Returns:
        The version with the values, and their counts.
    """
    started = time.monotonic()
    _check_arguments(column, columns, batch_rows, commit_every, max_tasks)
    type_asked = parse_type(dtype, "dtype") if isinstance(dtype, str) else dtype
    made = ColumnFunction.of(column, function, setup)
    session = cache(spark) if callable(spark) else lambda: spark
    with resolved_table(namespace, table) as target:
        latest = _opened(target, columns)
        prepared = _Preparation(target, session, made, tuple(columns))
        if where is not None:  # an invalid condition is refused before a column is added
            added = [] if column in latest.schema.names else [pa.field(column, type_asked or pa.null())]
            parse_condition(where, pa.schema([*latest.schema, *added]), f"table {target.id}: where")
        with acquire_lease(target.dataset).kept_alive(end=True) as lease:
            latest = prepared.with_column(latest, type_asked)
            condition = _rows_to_compute(target, latest, column, where)
            request = ColumnRequest(
                dataset=target.dataset,
                layout=ColumnLayout.of(latest, column),
                function=made,
                inputs=tuple(columns),
                condition=None if condition.matches_all else condition.lance_sql,
                reads_other_columns=not condition.columns <= {column, *columns},
                batch_rows=batch_rows,
                execution_id=execution_id or "",
                progress=(progress := WriteProgress(lease)),
            )
            run = ColumnRun(
                target=target,
                lease=lease,
                request=request,
                fills_nulls=where is None,
                commit_every=commit_every,
                max_tasks=max_tasks,
                latest=latest,
                known=latest,
                versions=prepared.versions,
            )
            with progress.logged():
                run.run(session)
        result = prepared.result(run, started)
    _log.info("%s", result)
    return result


@dataclass(frozen=True, slots=True)
class _Preparation:
    target: ResolvedTable
    session: Callable[[], SparkSession]
    function: ColumnFunction
    inputs: tuple[str, ...]
    versions: list[int] = field(default_factory=list)
    """The versions that were made."""

    def with_column(self, latest: LanceDataset, requested: pa.DataType | None) -> LanceDataset:
        """Return the table at a version that has the column, which is added if there is none."""
        column, schema = self.function.column, latest.schema
        if column not in schema.names:
            arrow = self._type(schema) if requested is None else requested
            added = pa.field(column, arrow)
            check_columns(str(self.target.id), pa.schema([*schema, added]))
            commits = SchemaCommits(self.target, _OPERATION)
            latest = add_null_column(commits, latest, added)
            self.versions.extend(commits.versions)
        present = latest.schema.field(column).type
        if requested is not None and present != requested:
            raise spec_errors.TableSchemaValidationError(
                f"table {self.target.id}: dtype: column {column!r} is {present}, not {requested}; "
                "leave dtype out, or choose another column"
            )
        return latest

    def _type(self, schema: pa.Schema) -> pa.DataType:
        table, column = self.target.id, self.function.column
        inputs = pa.schema([_input(schema.field(name)) for name in self.inputs])
        (answer,) = run_in_parallel(self.session, [TypeTask(self.function, inputs)])
        if answer.failure is not None:
            text = (
                f"table {table}: column {column!r}: the function failed on a batch without rows, which shows "
                f"the column's type unless dtype is given: {answer.failure.message}"
            )
            raise (
                spec_errors.InvalidInputError(text)
                if answer.failure.is_invalid
                else ColumnFunctionError(text)
            )
        if answer.result is None or pa.types.is_null(answer.result):
            raise spec_errors.InvalidInputError(
                f"table {table}: column {column!r}: the function returned nulls of no type for a batch "
                "without rows; set dtype"
            )
        return answer.result

    def result(self, run: ColumnRun, started: float) -> ComputeResult:
        counts, version = counts_of(run.files), run.latest.version
        commits = len(run.versions)
        # Commits of others since the run began aren't part of its versions.
        previous = run.versions[0] - 1 if commits else version
        return ComputeResult(
            table=str(self.target.id),
            location=self.target.dataset.location,
            operation=_OPERATION,
            outcome="done" if commits else "unchanged",
            column=self.function.column,
            version=version,
            previous_version=previous,
            computed=counts.rows,
            nulls=sum(file.nulls for file in run.files),
            files=counts.files,
            bytes=counts.bytes,
            commits=commits,
            seconds=elapsed(started),
        )


def _input(column: pa.Field) -> pa.Field:
    """Return a column as the function gets it: of blobs, the bytes."""
    return column.with_type(pa.large_binary()) if is_blob(column.type) else column


def _check_arguments(
    column: str, columns: Sequence[str], batch_rows: int, commit_every: int | None, max_tasks: int | None
) -> None:
    if isinstance(columns, str) or not columns:
        raise spec_errors.InvalidInputError(
            f"columns: expected a list of at least one column, got {columns!r}"
        )
    if not isinstance(column, str) or not column:
        raise spec_errors.InvalidInputError(f"column: expected the name of a column, got {column!r}")
    try:
        check_sizes(batch_rows, commit_every, max_tasks)
    except ValueError as error:
        raise spec_errors.InvalidInputError(str(error)) from error


def _opened(target: ResolvedTable, columns: Sequence[str]) -> LanceDataset:
    latest = target.open_latest()
    if latest is None:
        raise target.nothing_written()
    target.check_not_bypassed(latest.version)
    if latest.data_storage_version.startswith("0."):
        raise spec_errors.UnsupportedOperationError(
            f"table {target.id}: it has file format {latest.data_storage_version}; columns can be computed "
            "from format 2.0 on"
        )
    if missing := [name for name in columns if name not in latest.schema.names]:
        raise spec_errors.TableColumnNotFoundError(
            f"table {target.id}: columns: expected names among {latest.schema.names}, got {missing}"
        )
    for name in columns:
        # Files that rows refer to would be read without a check of their location.
        if path := inner_blob(latest.schema.field(name).type, name):
            raise spec_errors.InvalidInputError(
                f"table {target.id}: columns: {path} is a blob within a struct, an array or a map; expected "
                "columns that are blobs, or have none"
            )
    return latest


def _rows_to_compute(
    target: ResolvedTable, latest: LanceDataset, column: str, where: str | None
) -> Condition:
    if where is None:
        return is_null(column, latest.schema)
    return parse_filter(target, latest, where, "where")
