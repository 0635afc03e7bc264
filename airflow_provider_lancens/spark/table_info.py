"""Descriptions of a table: its history, its statistics, its indices and its tags."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.namespace.storage.version_tags import is_on_main, list_tags
from airflow_provider_lancens.spark.keys import Counts, KeyedCommit, key_of, operation_of
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_AGE,
    DEFAULT_THRESHOLDS,
    CompactionOptions,
)
from airflow_provider_lancens.spark.table.history import transactions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance import LanceDataset

    from airflow_provider_lancens.spark.maintenance.table_state import TableState
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


class _Described:
    """A dataclass of plain values."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as a dictionary."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, slots=True)
class VersionInfo(_Described):
    """A version of a table that is kept."""

    version: int
    committed_at: datetime | None
    """When the storage got it, by the storage's clock; None if the metastore has not named it yet."""
    operation: str
    """What made it, such as ``append`` or ``compact``; empty if the version was cleaned up."""
    key: str | None
    """The idempotency key of its write; None if it had none."""
    inserted: int
    updated: int
    deleted: int
    """The rows that were changed; 0 if unknown."""
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableStats(_Described):
    """The size of a table's newest version, and what maintenance is due."""

    version: int
    rows: int
    """Rows that aren't deleted."""
    deleted_rows: int
    """Rows that are marked as deleted; a compaction removes them."""
    fragments: int
    small_fragments: int
    """Fragments that a compaction would merge."""
    files: int
    bytes: int
    """The size of the data files of this version."""
    versions: int
    """Number of versions that are kept."""
    oldest_version_at: datetime | None
    due: Mapping[str, str]
    """The steps of maintenance that are due by default, ``compact`` and ``expire``, with what was found."""


@dataclass(frozen=True, slots=True)
class IndexInfo(_Described):
    """An index of a table, and how much of a version it covers."""

    name: str
    column: str
    """``<unknown>`` if it no longer exists, so that reads with a filter fail until the index is dropped."""
    index_type: str
    rows: int
    """Rows of the version that are in it."""
    unindexed_rows: int
    segments: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Tag(_Described):
    """A name of a version, which protects it from clean-ups."""

    name: str
    version: int
    branch: str | None = None
    """The branch that has the version, written by another client; None is the main line."""


def tags_of(dataset: LanceDataset) -> list[Tag]:
    """Return the tags of a table by name."""
    return [
        Tag(name, int(tag["version"]), None if is_on_main(tag) else str(tag["branch"]))
        for name, tag in sorted(list_tags(dataset).items())
    ]


def history_of(target: ResolvedTable, dataset: LanceDataset, limit: int) -> list[VersionInfo]:
    """Return the versions that are kept up to an opened one, newest first.

    Args:
        target: the table.
        dataset: its dataset, at the version to begin with.
        limit: how many.
    """
    stored = {v: manifest for v, manifest in target.dataset.manifests.all().items() if v <= dataset.version}
    tags: dict[int, list[str]] = {}
    for tag in (named for named in tags_of(dataset) if named.branch is None):
        tags.setdefault(tag.version, []).append(tag.name)
    found = []
    oldest = min(stored, default=dataset.version)
    commits = (
        (v, transaction)
        for v, transaction in transactions_of(dataset, oldest - 1)
        if transaction is not None or v in stored
    )
    for version, transaction in islice(commits, max(limit, 0)):
        counts = Counts() if transaction is None else KeyedCommit.of(version, transaction).counts
        found.append(
            VersionInfo(
                version=version,
                committed_at=stored[version].modified if version in stored else None,
                operation="" if transaction is None else operation_of(transaction),
                key=None if transaction is None else key_of(transaction),
                inserted=counts.inserted,
                updated=counts.updated or 0,
                deleted=counts.deleted or 0,
                tags=tuple(tags.get(version, ())),
            )
        )
    return found


def stats_of(state: TableState, age: timedelta = DEFAULT_AGE) -> TableStats:
    """Return the statistics of a table; one listing of its versions, and no file of data is read."""
    dataset = state.dataset
    fragmentation = state.fragmentation(CompactionOptions())
    decisions = {
        "compact": fragmentation.decide(DEFAULT_THRESHOLDS),
        "expire": state.old_versions(age, 1).decide(DEFAULT_THRESHOLDS),
    }
    files = [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]
    stored = {
        v: manifest for v, manifest in state.target.dataset.manifests.all().items() if v <= state.version
    }
    return TableStats(
        version=state.version,
        rows=fragmentation.rows,
        deleted_rows=fragmentation.deleted,
        fragments=fragmentation.fragments,
        small_fragments=fragmentation.small,
        files=len(files),
        bytes=sum(file.file_size_bytes or 0 for file in files),
        versions=len(stored),
        oldest_version_at=stored[min(stored)].modified if stored else None,
        due={name: decision.reason for name, decision in decisions.items() if decision.is_due},
    )


def indices_of(dataset: LanceDataset) -> list[IndexInfo]:
    """Return the indices of an opened version by name."""
    rows = dataset.count_rows()
    return [
        IndexInfo(
            name=index.name,
            column=", ".join(index.field_names),
            index_type=index.index_type,
            rows=min(index.num_rows_indexed, rows),
            unindexed_rows=max(rows - index.num_rows_indexed, 0),
            segments=len(index.segments),
            bytes=index.total_size_bytes or 0,
        )
        for index in sorted(dataset.describe_indices(), key=lambda index: str(index.name))
    ]
