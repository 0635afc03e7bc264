"""Commit written columns of fragments: those whose other files are still the ones that were read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits, SchemaStep
from airflow_provider_lancens.spark.commit.table_changes import CommitStep, TableChange
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.compute.column_files import ColumnFile, ColumnLayout, field_ids
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite, unique_key
from airflow_provider_lancens.spark.maintenance.rewritten_columns import COMPUTED
from airflow_provider_lancens.spark.table.described_columns import describe_columns
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset


class AllPreemptedError(Exception):
    """Other commits have rewritten all of these fragments, or changed what their values depend on."""


@dataclass(frozen=True, slots=True)
class ColumnUpdate(TableChange):
    """Put written files into their fragments, unless others have rewritten these meanwhile."""

    layout: ColumnLayout
    files: Sequence[ColumnFile] = field(repr=False)
    applied: list[ColumnFile] = field(default_factory=list, repr=False)
    """The files among them that the last step has."""

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: what others deleted stays deleted, what they rewrote is left out.

        Raises:
            AllPreemptedError: nothing is left to commit.
        """
        from lance import LanceOperation

        if latest is None:
            raise self._conflict("its dataset was removed")
        column = self.layout.field
        # The type too, since a column that is added gets the id of one that was dropped.
        if field_ids(latest, column.name) != self.layout.ids or latest.schema.field(column.name) != column:
            raise self._conflict(f"version {latest.version} changed column {column.name!r}")
        present = {fragment.fragment_id: fragment.metadata for fragment in latest.get_fragments()}
        self.applied[:] = [file for file in self.files if file.applies_to(present.get(file.fragment))]
        if not self.applied:
            raise AllPreemptedError
        ids = self.layout.ids
        bitmaps = {file.fragment: file.offsets for file in self.applied if file.offsets is not None}
        update = LanceOperation.Update(
            updated_fragments=[file.applied_to(present[file.fragment], ids) for file in self.applied],
            # With its parents, so that Lance no longer uses any index for these fragments.
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
    """Commit what others have left of an update, as exactly one version.

    Returns:
        The version; None if nothing is left. `ColumnUpdate.applied` has what it contains.

    Raises:
        ConcurrentModificationError: (14) others changed the column itself, or every attempt lost.
    """
    try:
        outcome = Committer(target, KeyedWrite(unique_key()), Counts(), lease=lease).commit(update)
    except AllPreemptedError:
        return None
    return outcome.commit.version


def add_null_column(target: ResolvedTable, latest: LanceDataset, column: pa.Field) -> LanceDataset:
    """Add a column of nulls, which costs no file, unless there is one of this name.

    Args:
        target: the table.
        latest: the dataset at its newest version.
        column: the column, which may be null.

    Returns:
        The dataset at a version that has the column.
    """
    marked = column.with_metadata({COMPUTED: "true"})
    step = SchemaStep(f"adds {column.name} ({column.type})", lambda opened: opened.add_columns(marked))
    added = SchemaCommits(target).run(
        lambda newest: None if column.name in newest.schema.names else step, latest
    )
    describe_columns(target, added.schema)
    return added


def mark_computed(target: ResolvedTable, latest: LanceDataset, column: str) -> LanceDataset:
    """Note in a column's metadata that its values may be rewritten in place, unless that is noted.

    Its indices aren't extended then before it was checked that they have no old values.
    """
    note: dict[str, dict[str, str | None]] = {column: {COMPUTED: "true"}}
    step = SchemaStep(f"marks {column} as computed", lambda opened: opened.update_field_metadata(note))

    def next_step(newest: LanceDataset) -> SchemaStep | None:
        is_noted = COMPUTED.encode() in (newest.schema.field(column).metadata or {})
        return None if is_noted else step

    return SchemaCommits(target).run(next_step, latest)
