"""Indices: each executor task builds a segment over some fragments, the driver commits them as one index."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.executor_failures import storage_failures
from airflow_provider_lancens.spark.maintenance.decisions import Coverage, same_type
from airflow_provider_lancens.spark.maintenance.index_columns import check_column
from airflow_provider_lancens.spark.maintenance.index_extension import Extension, plan_extension
from airflow_provider_lancens.spark.maintenance.index_training import train
from airflow_provider_lancens.spark.maintenance.maintained_table import MaintainedTable, maintained
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_SEGMENTS,
    IF_INDEX_EXISTS,
    IfIndexExists,
    IndexSpec,
    check_positive,
)
from airflow_provider_lancens.spark.maintenance.maintenance_plan import Thresholds
from airflow_provider_lancens.spark.maintenance.maintenance_results import IndexResult
from airflow_provider_lancens.spark.maintenance.parallel_tasks import Spark, run_in_parallel
from airflow_provider_lancens.spark.maintenance.table_state import TableState, described_index, table_state
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

if TYPE_CHECKING:
    from lance.dataset import Index
    from lance.fragment import LanceFragment
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)


def build_index(
    spark: Spark,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    column: str,
    index_type: str,
    *,
    name: str | None = None,
    if_exists: IfIndexExists = "skip",
    segments: int = DEFAULT_SEGMENTS,
    options: Mapping[str, Any] | None = None,
    thresholds: Thresholds | None = None,
) -> IndexResult:
    """Build an index over all rows of a table, in one commit.

    Rows that others append meanwhile aren't in it, but queries find them: Lance also searches rows that an
    index doesn't cover. A driver that dies leaves unreferenced files.

    Args:
        spark: the session, or a function that starts one, called only if there is work.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        column: the column to index.
        index_type: for filters ``BTREE``, ``BITMAP``, ``LABEL_LIST``, ``NGRAM``, ``ZONEMAP`` and
            ``BLOOMFILTER``; for full-text search ``INVERTED``; for nearest neighbors ``IVF_FLAT``,
            ``IVF_SQ``, ``IVF_PQ``, and the same with ``IVF_HNSW_``.
        name: the name of the index; by default ``<column>_idx``.
        if_exists: whether an index of that name, column and type is left unchanged (``skip``), extended by
            the rows that aren't in it (``extend``), rebuilt over all rows (``replace``) or an error
            (``fail``). Extending merges small segments if there are many. What can't be extended is rebuilt:
            an index on a column that was computed anew since, and a vector index that was trained with
            other options, or on less than a quarter of the rows.
        segments: the maximum number of segments, each built by a Spark task; a query searches all of them.
        options: options of the type, such as ``metric`` and ``num_partitions``; see docs/maintenance.md.
        thresholds: when extending or replacing the index is due, decided by the table's metadata alone; None
            is always.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableIndexAlreadyExistsError: there is an index of that name, and `if_exists` is ``fail``, or it is
            on another column or, unless it is ``replace``, of another type.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) the column can't have this index, there are too few rows for it, or an
            argument is invalid.
        ConcurrentModificationError: (14) others rewrote the rows or made the same index meanwhile.
        ServiceUnavailableError: (17) the storage or the metastore failed.
        InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
    """
    started = time.monotonic()
    spec = _checked(column, index_type, name, if_exists, segments, options or {})
    reason = ""
    if thresholds is not None and thresholds.max_unindexed_share is not None:
        with table_state(namespace, table) as state:
            coverage, decision = state.decide_index(spec, thresholds)
        if not decision.is_due:
            return not_indexed(state, coverage, decision.reason)
        reason = decision.reason
    with maintained(namespace, table) as opened:
        check_column(str(opened.target.id), spec, opened.dataset.schema)
        extension = _what_to_build(opened, spec, if_exists, segments)
        if extension.fragments:
            _build(spark, opened, spec, segments, extension)
        result = _result(opened, spec, started, created=bool(extension.fragments), reason=reason)
    _log.info("%s", _sentence(result))
    return result


def not_indexed(state: TableState, coverage: Coverage, reason: str) -> IndexResult:
    """Return the result where building or extending an index isn't due."""
    spec = coverage.spec
    return IndexResult(
        table=state.table,
        index=spec.name,
        column=spec.column,
        index_type=spec.index_type,
        version=state.version,
        previous_version=state.version,
        rows=coverage.indexed,
        segments=coverage.segments,
        bytes=coverage.bytes,
        seconds=0.0,
        created=False,
        reason=reason,
    )


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """Build the index over some fragments, on an executor. Picklable."""

    dataset: DatasetRef
    version: int
    spec: IndexSpec
    shared: Mapping[str, Any] = field(repr=False)
    """Arguments that all segments share."""
    fragment_ids: Sequence[int]

    def __call__(self) -> Index:
        """Write the segment, which isn't committed yet."""
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            return self.dataset.open(self.version).create_index_uncommitted(
                self.spec.column,
                self.spec.index_type,
                name=self.spec.name,
                replace=True,
                fragment_ids=list(self.fragment_ids),
                **self.shared,
            )


def _checked(
    column: str, index_type: str, name: str | None, if_exists: str, segments: int, options: Mapping[str, Any]
) -> IndexSpec:
    if if_exists not in IF_INDEX_EXISTS:
        raise spec_errors.InvalidInputError(f"if_exists={if_exists!r}; allowed: {', '.join(IF_INDEX_EXISTS)}")
    try:
        check_positive("segments", segments)
        return IndexSpec(column, index_type, name or "", options)
    except ValueError as error:
        raise spec_errors.InvalidInputError(str(error)) from error


def _what_to_build(
    opened: MaintainedTable, spec: IndexSpec, if_exists: IfIndexExists, segments: int
) -> Extension:
    """Return which segments to build; of no fragments to leave the index as it is."""
    present = described_index(opened.dataset, spec.name)
    if present is not None:
        _check_may_exist(opened, spec, present, if_exists)
        if if_exists == "skip":
            return Extension([], {})
        storage_options = opened.target.dataset.storage_options
        if if_exists == "extend" and (
            extension := plan_extension(opened.dataset, storage_options, spec, present, segments)
        ):
            return extension
    return _whole_index(opened, spec)


def _whole_index(opened: MaintainedTable, spec: IndexSpec) -> Extension:
    table, dataset = str(opened.target.id), opened.dataset
    fragments = dataset.get_fragments()
    if not fragments:
        raise spec_errors.InvalidInputError(f"table {table}: version {opened.version} has no rows to index")
    return Extension(fragments, train(table, dataset, spec) if spec.is_vector else spec.options)


def _check_may_exist(
    opened: MaintainedTable, spec: IndexSpec, present: Any, if_exists: IfIndexExists
) -> None:
    same_column = present.field_names == [spec.column]
    fits = same_type(present.index_type, spec.index_type) or if_exists == "replace"
    if same_column and fits and if_exists != "fail":
        return
    raise spec_errors.TableIndexAlreadyExistsError(
        f"table {opened.target.id}: index {spec.name!r} already exists as {present.index_type} on "
        f"{', '.join(present.field_names)}; if_exists={if_exists!r} does not replace it by "
        f"{spec.index_type} on {spec.column}: choose another name"
        + (", or if_exists='replace'" if same_column else "")
    )


def _build(
    spark: Spark, opened: MaintainedTable, spec: IndexSpec, segments: int, extension: Extension
) -> None:
    table, dataset = str(opened.target.id), opened.dataset
    shares = shares_of(extension.fragments, dataset.get_fragments(), segments)
    _log.info("table %s: building %s on %s in %d tasks", table, spec.index_type, spec.column, len(shares))
    reference, version = opened.target.dataset, opened.version
    built = run_in_parallel(
        spark, [SegmentTask(reference, version, spec, extension.shared, share) for share in shares]
    )
    with opened.committing():
        dataset.commit_existing_index_segments(spec.name, spec.column, [*built])


def shares_of(
    fragments: Sequence[LanceFragment], everything: Sequence[LanceFragment], most: int
) -> list[list[int]]:
    """Divide fragments into neighbors with about as many rows as a segment of the whole table would have.

    A compaction doesn't merge fragments of different segments, so neighbors belong in the same one.
    """
    total = sum(fragment.metadata.physical_rows for fragment in everything) or 1
    shares: dict[int, list[int]] = {}
    before = 0
    for fragment in fragments:
        rows = fragment.metadata.physical_rows
        shares.setdefault((2 * before + rows) * most // (2 * total), []).append(fragment.fragment_id)
        before += rows
    return list(shares.values())


def _result(
    opened: MaintainedTable, spec: IndexSpec, started: float, *, created: bool, reason: str
) -> IndexResult:
    index = described_index(opened.dataset, spec.name)
    return IndexResult(
        table=str(opened.target.id),
        index=index.name,
        column=spec.column,
        index_type=spec.index_type,
        version=opened.dataset.version,
        previous_version=opened.version,
        rows=index.num_rows_indexed,
        segments=len(index.segments),
        bytes=index.total_size_bytes or 0,
        seconds=round(time.monotonic() - started, 3),
        created=created,
        reason=reason,
    )


def _sentence(result: IndexResult) -> str:
    what = f"table {result.table}: index {result.index!r}, {result.index_type} on {result.column}"
    if not result.created:
        return f"{what} is left as it is, still at version {result.version}"
    return f"{what}: committed version {result.version} over {result.rows:,} rows in {result.seconds:.1f} s"
