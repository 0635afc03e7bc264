"""Context of one write of rows: its request, and the commits under its key."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens.spark.keys import KeyedCommit, KeyedWrite, KeyLookup, look_up
from airflow_provider_lancens.spark.options import Change, TableLayout, Upsert, WriteRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from lance import LanceDataset

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


@dataclass(frozen=True, slots=True)
class WriteContext:
    """A requested write, and the lookup of its key."""

    request: WriteRequest
    lookup: KeyLookup

    @classmethod
    def begin(cls, target: ResolvedTable, request: WriteRequest, opened: LanceDataset | None = None) -> Self:
        """Look up the key of a write.

        Args:
            target: the table.
            request: the write.
            opened: see `look_up`.

        Raises:
            InvalidInputError: (13) the key was committed with other data, or has expired.
            InvalidTableStateError: (19) it cannot be determined whether the key was committed.
        """
        identity = request.identity
        if request.change.stage and identity.key is None:
            # Another call, which looks the key up, publishes what is staged.
            identity = replace(identity, key=f"staged/{uuid.uuid4()}")
        lookup = look_up(
            target,
            identity,
            replaces_rows=not request.on,
            may_be_staged=request.change.stage,
            opened=opened,
        )
        return cls(request, lookup)

    @property
    def target(self) -> ResolvedTable:
        """The table."""
        return self.lookup.target

    @property
    def table(self) -> str:
        """The table's identifier, for messages."""
        return str(self.lookup.target.id)

    @property
    def change(self) -> Change:
        """What the write does."""
        return self.request.change

    @property
    def layout(self) -> TableLayout:
        """The layout of a new dataset: as requested, and else as declared.

        Raises:
            InvalidTableStateError: (19) the catalog table has something else in its place.
        """
        return self.request.options.over(self.target.layout)

    def layout_of(self, rows: pa.Schema) -> TableLayout:
        """Return the layout for rows of a table that has data: the declared columns that the rows have.

        The other columns were renamed or dropped since the declaration, or the source has lost them. A column
        that the write itself names must be among the rows' columns.
        """
        layout, given = self.layout, self.request.options
        if not given.vector_columns:
            vectors = {name: size for name, size in layout.vector_columns.items() if name in rows.names}
            layout = replace(layout, vector_columns=vectors)
        if not given.blob_columns:
            blobs = [name for name in layout.blob_columns if name in rows.names]
            layout = replace(layout, blob_columns=blobs)
        return layout

    @property
    def latest(self) -> LanceDataset | None:
        """The dataset at its newest version; None if nothing was written yet."""
        return self.lookup.latest

    @property
    def write(self) -> KeyedWrite:
        """What identifies its commit."""
        return self.lookup.write

    @property
    def earlier(self) -> KeyedCommit | None:
        """The commit by which an earlier run has made the same write."""
        return self.lookup.earlier

    @property
    def repeated(self) -> KeyedCommit | None:
        """The newest commit under the key, if another execution made it and this write is made again."""
        return self.lookup.repeated

    @property
    def replaced(self) -> Sequence[KeyedCommit]:
        """The commits under the key whose rows this write is to replace, newest first."""
        return self.lookup.replaced

    def as_upsert(self) -> UpsertContext | None:
        """Return the same write as an upsert; None if it isn't one."""
        return None if self.request.upsert is None else UpsertContext(self.request, self.lookup)

    def with_change(self, change: Change) -> Self:
        """Return the same write with another spelling of its change."""
        return replace(self, request=replace(self.request, change=change))

    def at(self, latest: LanceDataset) -> Self:
        """Return the same write for a newer version; the key isn't looked up again."""
        return replace(self, lookup=replace(self.lookup, latest=latest))

    def at_newest(self) -> Self:
        """Return the same write for the newest version, for a write that waited."""
        return replace(self, lookup=self.lookup.at_newest())


@dataclass(frozen=True, slots=True)
class UpsertContext(WriteContext):
    """A write that is an upsert."""

    @property
    def change(self) -> Upsert:
        """What the write does."""
        change = self.request.change
        if not isinstance(change, Upsert):
            raise TypeError(f"expected an upsert, got {change!r}")
        return change
