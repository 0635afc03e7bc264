"""Write rows under a key, once: look for the key, have the fragments made, commit them.

What the rows are made of doesn't matter here (`rows`), nor how one commit is fenced (`commit`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark import ledger
from airflow_provider_lancens.spark.answers import result_of, sentence_of
from airflow_provider_lancens.spark.changes import KINDS, Append, Change, already_there
from airflow_provider_lancens.spark.commit import Committer, Outcome
from airflow_provider_lancens.spark.fit import check_fit
from airflow_provider_lancens.spark.history import Commit
from airflow_provider_lancens.spark.naming import WriteName
from airflow_provider_lancens.spark.options import MODES, Mode, OnChanged, WriteOptions, WriteResult
from airflow_provider_lancens.spark.replacement import replacing
from airflow_provider_lancens.spark.running import running
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described
from airflow_provider_lancens.spark.tasks import WriteTask
from airflow_provider_lancens.spark.upsert import Upsert, check_keys, read_keys

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.rows import Rows

_log = logging.getLogger(__name__)

_KINDS: dict[str, type[Change]] = {**KINDS, "upsert": Upsert}


def write_once(
    rows: Rows,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    mode: Mode,
    idempotency_key: str | None,
    options: WriteOptions | None,
    fingerprint: str | None = None,
    on_changed: OnChanged = "fail",
    on: Sequence[str] | None = None,
) -> WriteResult:
    """What `writer.write_table` does, for rows of any kind; they are not touched where the key is found."""
    started = time.monotonic()
    _check(mode, on or (), on_changed)
    name = WriteName.of(idempotency_key, fingerprint, on_changed)
    with described(namespace, table) as target:
        outcome = _Write(target, mode, name, tuple(on or ())).run(rows, options or WriteOptions())
    return _answer(target.id, outcome, started)


def find_write(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    idempotency_key: str,
    *,
    fingerprint: str | None = None,
    on_changed: OnChanged = "fail",
) -> WriteResult | None:
    """What an earlier `write_table` under this key committed, without any Spark.

    Args:
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        idempotency_key: the key.
        fingerprint: tells what would be written now; None is equal to any.
        on_changed: ``fail`` where that call had another fingerprint, or ``replace``.

    Returns:
        What that call answered, with `committed` false; None where it was not committed, or is to be
        replaced.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) an argument is wrong, or that call had another fingerprint.
    """
    started = time.monotonic()
    name = WriteName.of(idempotency_key, fingerprint, on_changed)
    with described(namespace, table) as target:
        commit = ledger.find(target, target.open_latest(), name.key)
        if commit is None or not name.is_made_by(commit, str(target.id)):
            return None
        ledger.remember(target, name.key, commit)
    return _answer(target.id, Outcome(commit, made_here=False), started)


@dataclass(frozen=True, slots=True)
class _Write:
    target: Target
    mode: str
    name: WriteName
    on: tuple[str, ...]

    def run(self, rows: Rows, options: WriteOptions) -> Outcome:
        base = self.target.open_latest()
        found = ledger.find(self.target, base, self.name.key)
        if found is not None and self.name.is_made_by(found, str(self.target.id)):
            ledger.remember(self.target, self.name.key, found)
            return Outcome(found, made_here=False)
        kind = self._kind(base, found)
        task = self._plan(rows, base, options)
        with running(self.target.dataset) as write:
            fragments, counts = rows.write(task)
            if kind in (Append, Upsert) and base is not None and not fragments:
                return Outcome(Commit(base.version, "", counts), made_here=False)
            change = self._change(kind, base, task, fragments)
            committer = Committer(
                target=self.target,
                key=self.name.key,
                counts=counts,
                stable_row_ids=options.enable_stable_row_ids,
                fingerprint=self.name.fingerprint,
                write=write,
            )
            return committer.commit(change, looked_up_to=change.base or 0)

    def _kind(self, base: LanceDataset | None, found: Commit | None) -> Callable[..., Change]:
        """What to do to the table, once it is clear that it can be done."""
        table = str(self.target.id)
        if base is not None and found is not None:
            return replacing(self.mode, base, found, table)
        if self.mode == "create" and base is not None:
            raise already_there(table, base.version)
        return _KINDS[self.mode]

    def _plan(self, rows: Rows, base: LanceDataset | None, options: WriteOptions) -> WriteTask:
        appends_to = base if self.mode in ("append", "upsert") else None
        storage = self.target.dataset.storage_options
        schema = rows.schema(storage, options.vector_columns if appends_to is None else None)
        if appends_to is not None:
            check_fit(str(self.target.id), schema, appends_to.schema)
            schema = appends_to.schema
        check_keys(self.on, schema, str(self.target.id))
        return WriteTask(
            dataset=self.target.dataset,
            schema=schema,
            appends_to=None if appends_to is None else appends_to.version,
            max_rows_per_file=options.max_rows_per_file,
            # A commit can't change a data set's format, so an overwrite keeps it too.
            data_storage_version=options.data_storage_version if base is None else base.data_storage_version,
        )

    def _change(
        self, kind: Callable[..., Change], base: LanceDataset | None, task: WriteTask, fragments: list[str]
    ) -> Change:
        from lance import FragmentMetadata

        table = str(self.target.id)
        written = [FragmentMetadata.from_json(fragment) for fragment in fragments]
        if self.on:
            columns = pa.schema([task.schema.field(name) for name in self.on])
            kind = partial(kind, keys=read_keys(task.dataset, written, columns, table))
        return kind(
            table=table,
            base=None if base is None else base.version,
            schema=task.schema,
            fragments=written,
        )


def _answer(table: TableId, outcome: Outcome, started: float) -> WriteResult:
    result = result_of(table, outcome, started)
    _log.info("%s", sentence_of(result))
    return result


def _check(mode: str, on: Sequence[str], on_changed: str) -> None:
    if mode not in MODES:
        raise InvalidInputError(f"mode: expected one of {', '.join(MODES)}, got {mode!r}")
    if (mode == "upsert") != bool(on) or isinstance(on, str):
        raise InvalidInputError(f"on: expected a list of key columns for mode 'upsert' alone, got {on!r}")
    if mode == "upsert" and on_changed == "replace":
        raise InvalidInputError(
            "on_changed='replace': what an upsert replaced isn't there any more to be put back; "
            "upsert corrected rows under another key"
        )
