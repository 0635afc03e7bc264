"""Write rows under a key, once: look for the key, have the fragments made, commit them.

What the rows are made of doesn't matter here (`rows`), nor how one commit is fenced (`commit`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark import ledger
from airflow_provider_lancens.spark.changes import KINDS, Append, Change, already_there
from airflow_provider_lancens.spark.commit import Committer, Outcome
from airflow_provider_lancens.spark.fit import check_fit
from airflow_provider_lancens.spark.history import Commit
from airflow_provider_lancens.spark.naming import WriteName
from airflow_provider_lancens.spark.options import Mode, OnChanged, WriteOptions, WriteResult
from airflow_provider_lancens.spark.replacement import replacing
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described
from airflow_provider_lancens.spark.tasks import WriteTask

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.rows import Rows

_log = logging.getLogger(__name__)


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
) -> WriteResult:
    """What `writer.write_table` does, for rows of any kind; they are not touched where the key is found."""
    started = time.monotonic()
    _check(mode)
    name = WriteName.of(idempotency_key, fingerprint, on_changed)
    with described(namespace, table) as target:
        outcome = _Write(target, mode, name).run(rows, options or WriteOptions())
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

    def run(self, rows: Rows, options: WriteOptions) -> Outcome:
        base = self.target.open_latest()
        found = ledger.find(self.target, base, self.name.key)
        if found is not None and self.name.is_made_by(found, str(self.target.id)):
            ledger.remember(self.target, self.name.key, found)
            return Outcome(found, made_here=False)
        kind = self._kind(base, found)
        task = self._plan(rows, base, options)
        fragments, counts = rows.write(task)
        if kind is Append and base is not None and not fragments:
            return Outcome(Commit(base.version, "", counts), made_here=False)
        change = self._change(kind, base, task, fragments)
        committer = Committer(
            self.target, self.name.key, counts, options.enable_stable_row_ids, self.name.fingerprint
        )
        return committer.commit(change, looked_up_to=change.base or 0)

    def _kind(self, base: LanceDataset | None, found: Commit | None) -> Callable[..., Change]:
        """What to do to the table, once it is clear that it can be done."""
        table = str(self.target.id)
        if base is not None and found is not None:
            return replacing(self.mode, base, found, table)
        if self.mode == "create" and base is not None:
            raise already_there(table, base.version)
        return KINDS[self.mode]

    def _plan(self, rows: Rows, base: LanceDataset | None, options: WriteOptions) -> WriteTask:
        appends_to = base if self.mode == "append" else None
        storage = self.target.dataset.storage_options
        schema = rows.schema(storage, options.vector_columns if appends_to is None else None)
        if appends_to is not None:
            check_fit(str(self.target.id), schema, appends_to.schema)
            schema = appends_to.schema
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

        return kind(
            table=str(self.target.id),
            base=None if base is None else base.version,
            schema=task.schema,
            fragments=[FragmentMetadata.from_json(fragment) for fragment in fragments],
        )


def _answer(table: TableId, outcome: Outcome, started: float) -> WriteResult:
    commit = outcome.commit
    result = WriteResult(
        table=str(table),
        version=commit.version,
        previous_version=commit.previous_version,
        rows=commit.counts.rows,
        files=commit.counts.files,
        bytes=commit.counts.bytes,
        seconds=round(time.monotonic() - started, 3),
        committed=outcome.made_here,
    )
    _log.info("%s", _sentence(result))
    return result


def _sentence(result: WriteResult) -> str:
    size = f"{result.rows:,} rows, {result.files} files, {result.bytes / 1e6:,.1f} MB"
    if not result.committed:
        return f"table {result.table}: nothing to commit, version {result.version} stands ({size})"
    rate = result.rows / max(result.seconds, 0.001)
    return (
        f"table {result.table}: committed version {result.version} with {size} "
        f"in {result.seconds:.1f} s ({rate:,.0f} rows/s)"
    )


def _check(mode: str) -> None:
    if mode not in KINDS:
        raise InvalidInputError(f"mode: expected one of {', '.join(KINDS)}, got {mode!r}")
