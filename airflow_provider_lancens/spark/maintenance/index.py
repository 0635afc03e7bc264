"""Indices: the executors build segments of one over some fragments each, the driver commits them as one."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import InvalidInputError, TableIndexAlreadyExistsError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.dataset import DatasetRef
from airflow_provider_lancens.spark.maintenance.columns import check_column
from airflow_provider_lancens.spark.maintenance.options import (
    DEFAULT_SEGMENTS,
    IF_INDEX_EXISTS,
    IfIndexExists,
    IndexResult,
    IndexSpec,
    check_positive,
)
from airflow_provider_lancens.spark.maintenance.side_by_side import Spark, side_by_side
from airflow_provider_lancens.spark.maintenance.table import MaintainedTable, maintained
from airflow_provider_lancens.spark.maintenance.training import train
from airflow_provider_lancens.spark.target import NamespaceSpec

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index
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
) -> IndexResult:
    """Build an index over all rows of a table, as one commit.

    Rows that others append meanwhile aren't in it, and are found all the same: Lance searches what an index
    doesn't cover. A driver that dies leaves files that no version refers to.

    Args:
        spark: the session, or a function that starts one, called only where there is work.
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        column: what it is built on.
        index_type: for filters ``BTREE``, ``BITMAP``, ``LABEL_LIST``, ``NGRAM``, ``ZONEMAP`` and
            ``BLOOMFILTER``; for full-text search ``INVERTED``; for nearest neighbors ``IVF_FLAT``,
            ``IVF_SQ``, ``IVF_PQ``, and the same with ``IVF_HNSW_``.
        name: of the index; by default ``<column>_idx``.
        if_exists: whether an index of that name, column and type is left as it is (``skip``), built anew
            over all rows (``replace``) or an error (``fail``).
        segments: into how many parts it is divided at most, each built by a Spark task; a query looks into
            all of them.
        options: what the type takes, such as ``metric`` and ``num_partitions``; see docs/maintenance.md.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableIndexAlreadyExistsError: there is an index of that name, and `if_exists` is ``fail``, or it is
            on another column or, with ``skip``, of another type.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) the column can't have this index, there are too few rows for it, or an
            argument is wrong.
        ConcurrentModificationError: (14) others rewrote the rows or made the same index meanwhile.
        ServiceUnavailableError: (17) the storage or the metastore failed.
        InvalidTableStateError: (19) a writer by path bypassed the metastore that decides the versions.
    """
    started = time.monotonic()
    spec = _checked(column, index_type, name, if_exists, segments, options or {})
    with maintained(namespace, table) as opened:
        check_column(str(opened.target.id), spec, opened.dataset.schema)
        present = _described(opened.dataset, spec)
        build = present is None or not _may_stay(opened, spec, present, if_exists)
        if build:
            _build(spark, opened, spec, segments)
        result = _answer(opened, spec, build, started)
    _log.info("%s", _sentence(result))
    return result


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """Build the index over some fragments; picklable, run by an executor."""

    dataset: DatasetRef
    version: int
    spec: IndexSpec
    shared: Mapping[str, Any] = field(repr=False)
    """What all segments have in common."""
    fragment_ids: Sequence[int]

    def __call__(self) -> Index:
        """Write the segment; it belongs to no version yet."""
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
        raise InvalidInputError(f"if_exists={if_exists!r}; allowed: {', '.join(IF_INDEX_EXISTS)}")
    try:
        check_positive("segments", segments)
        return IndexSpec(column, index_type, name or "", options)
    except ValueError as error:
        raise InvalidInputError(str(error)) from error


def _described(dataset: LanceDataset, spec: IndexSpec) -> Any:
    return next((index for index in dataset.describe_indices() if index.name == spec.name), None)


def _may_stay(opened: MaintainedTable, spec: IndexSpec, present: Any, if_exists: IfIndexExists) -> bool:
    same_column = present.field_names == [spec.column]
    same_type = _plain(present.index_type) == _plain(spec.index_type)
    if same_column and (if_exists == "replace" or (if_exists == "skip" and same_type)):
        return if_exists == "skip"
    raise TableIndexAlreadyExistsError(
        f"table {opened.target.id}: index {spec.name!r} exists, {present.index_type} on "
        f"{', '.join(present.field_names)}; with if_exists={if_exists!r} it isn't made {spec.index_type} on "
        f"{spec.column}: choose another name" + (", or if_exists='replace'" if same_column else "")
    )


def _plain(index_type: str) -> str:
    return index_type.replace("_", "").upper()


def _build(spark: Spark, opened: MaintainedTable, spec: IndexSpec, segments: int) -> None:
    table, dataset = str(opened.target.id), opened.dataset
    shares = _shares(dataset, segments)
    if not shares:
        raise InvalidInputError(f"table {table}: version {opened.version} has no rows to index")
    shared = train(table, dataset, spec) if spec.is_vector else dict(spec.options)
    _log.info("table %s: building %s on %s in %d tasks", table, spec.index_type, spec.column, len(shares))
    reference, version = opened.target.dataset, opened.version
    built = side_by_side(spark, [SegmentTask(reference, version, spec, shared, share) for share in shares])
    with opened.committing():
        dataset.commit_existing_index_segments(spec.name, spec.column, [*built])


def _shares(dataset: LanceDataset, most: int) -> list[list[int]]:
    """The fragments, dealt out so that each share has about as many rows."""
    fragments = sorted(dataset.get_fragments(), key=lambda f: f.metadata.physical_rows, reverse=True)
    shares: list[list[int]] = [[] for _ in range(min(most, len(fragments)))]
    smallest = [(0, number) for number in range(len(shares))]
    for fragment in fragments:
        rows, number = heapq.heappop(smallest)
        shares[number].append(fragment.fragment_id)
        heapq.heappush(smallest, (rows + fragment.metadata.physical_rows, number))
    return shares


def _answer(opened: MaintainedTable, spec: IndexSpec, created: bool, started: float) -> IndexResult:
    index = _described(opened.dataset, spec)
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
    )


def _sentence(result: IndexResult) -> str:
    what = f"table {result.table}: index {result.index!r}, {result.index_type} on {result.column}"
    if not result.created:
        return f"{what}, was there already; version {result.version} stands"
    return f"{what}: committed version {result.version} over {result.rows:,} rows in {result.seconds:.1f} s"
