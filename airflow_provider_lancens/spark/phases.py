"""A write in its two phases, before and after the executors make its fragments.

The driver of one may be another process than that of the other. How the executors are set to work
doesn't matter here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.spark import ledger
from airflow_provider_lancens.spark.changes import KINDS, Append, Change, already_there
from airflow_provider_lancens.spark.commit import Committer, Outcome
from airflow_provider_lancens.spark.fit import check_fit
from airflow_provider_lancens.spark.history import Commit
from airflow_provider_lancens.spark.naming import WriteName
from airflow_provider_lancens.spark.options import MODES, WriteOptions
from airflow_provider_lancens.spark.replacement import replacing
from airflow_provider_lancens.spark.tasks import WriteTask
from airflow_provider_lancens.spark.upsert import Upsert, check_keys, read_keys

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.spark.rows import Columns, Written
    from airflow_provider_lancens.spark.running import Running
    from airflow_provider_lancens.spark.target import Target

_KINDS: dict[str, type[Change]] = {**KINDS, "upsert": Upsert}


@dataclass(frozen=True, slots=True)
class WriteOrder:
    """What a caller wants to be done with some rows.

    Raises:
        InvalidInputError: (13) its parts don't go together.
    """

    mode: str
    name: WriteName
    options: WriteOptions
    on: tuple[str, ...] = ()
    """The columns of an upsert's key."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidInputError(f"mode: expected one of {', '.join(MODES)}, got {self.mode!r}")
        if (self.mode == "upsert") != bool(self.on):
            raise InvalidInputError(
                f"on: expected a list of key columns for mode 'upsert' alone, got {list(self.on)!r}"
            )
        if self.mode == "upsert" and self.name.on_changed == "replace":
            raise InvalidInputError(
                "on_changed='replace': what an upsert replaced isn't there any more to be put back; "
                "upsert corrected rows under another key"
            )

    def plan(self, target: Target, rows: Columns) -> WritePlan | Outcome:
        """What is to be done; where an earlier commit under the key has done it, that one.

        Raises:
            TableAlreadyExistsError: (5) `create`, and there is a data set.
            InvalidInputError: (13) the rows can't be stored, or the key was committed with other data.
            TableSchemaValidationError: (20) the columns don't fit.
        """
        base = target.open_latest()
        found = ledger.find(target, base, self.name.key)
        if found is not None and self.name.is_made_by(found, str(target.id)):
            ledger.remember(target, self.name.key, found)
            return Outcome(found, made_here=False)
        return WritePlan(
            order=self,
            kind=self._kind(target, base, found),
            base=None if base is None else base.version,
            task=self._task(target, base, rows),
        )

    def _kind(self, target: Target, base: LanceDataset | None, found: Commit | None) -> Callable[..., Change]:
        """What to do to the table, once it is clear that it can be done."""
        table = str(target.id)
        if base is not None and found is not None:
            return replacing(self.mode, base, found, table)
        if self.mode == "create" and base is not None:
            raise already_there(table, base.version)
        return _KINDS[self.mode]

    def _task(self, target: Target, base: LanceDataset | None, rows: Columns) -> WriteTask:
        appends_to = base if self.mode in ("append", "upsert") else None
        storage = target.dataset.storage_options
        schema = rows.schema(storage, self.options.vector_columns if appends_to is None else None)
        if appends_to is not None:
            check_fit(str(target.id), schema, appends_to.schema)
            schema = appends_to.schema
        check_keys(self.on, schema, str(target.id))
        return WriteTask(
            dataset=target.dataset,
            schema=schema,
            appends_to=None if appends_to is None else appends_to.version,
            max_rows_per_file=self.options.max_rows_per_file,
            # A commit can't change a data set's format, so an overwrite keeps it too.
            data_storage_version=self.options.data_storage_version
            if base is None
            else base.data_storage_version,
        )


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A write that only lacks its fragments. It pickles."""

    order: WriteOrder
    kind: Callable[..., Change]
    base: int | None
    """The newest version when it was planned; None where there was no data set."""
    task: WriteTask
    """What the executors do."""

    def commit(self, target: Target, written: Written, write: Running) -> Outcome:
        """Bring what the executors wrote into the table; an append of nothing commits nothing.

        Raises:
            InvalidInputError: (13) the rows have no keys to be upserted by.
            ConcurrentModificationError: (14) others leave no room for it.
        """
        if self.kind in (Append, Upsert) and self.base is not None and not written.fragments:
            return Outcome(Commit(self.base, "", written.counts), made_here=False)
        change = self._change(target, written.fragments)
        committer = Committer(
            target=target,
            key=self.order.name.key,
            counts=written.counts,
            stable_row_ids=self.order.options.enable_stable_row_ids,
            fingerprint=self.order.name.fingerprint,
            write=write,
        )
        return committer.commit(change, looked_up_to=change.base or 0)

    def _change(self, target: Target, fragments: list[str]) -> Change:
        from lance import FragmentMetadata

        table = str(target.id)
        written = [FragmentMetadata.from_json(fragment) for fragment in fragments]
        kind = self.kind
        if self.order.on:
            columns = pa.schema([self.task.schema.field(name) for name in self.order.on])
            kind = partial(kind, keys=read_keys(self.task.dataset, written, columns, table))
        return kind(table=table, base=self.base, schema=self.task.schema, fragments=written)
