"""Write rows under a key, once: look for the key, have the fragments made, commit them.

What the rows are made of doesn't matter here (`rows`), nor what happens in between (`phases`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark import ledger
from airflow_provider_lancens.spark.answers import answer
from airflow_provider_lancens.spark.commit import Outcome
from airflow_provider_lancens.spark.naming import WriteName
from airflow_provider_lancens.spark.options import Mode, OnChanged, WriteOptions, WriteResult
from airflow_provider_lancens.spark.phases import WriteOrder
from airflow_provider_lancens.spark.running import running
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.rows import Rows


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
    if isinstance(on, str):
        raise InvalidInputError(f"on: expected a list of key columns, got {on!r}")
    name = WriteName.of(idempotency_key, fingerprint, on_changed)
    order = WriteOrder(mode, name, options or WriteOptions(), tuple(on or ()))
    with described(namespace, table) as target:
        outcome = _outcome(order, target, rows)
    return answer(target.id, outcome, started)


def _outcome(order: WriteOrder, target: Target, rows: Rows) -> Outcome:
    plan = order.plan(target, rows)
    if isinstance(plan, Outcome):
        return plan
    with running(target.dataset) as write:
        return plan.commit(target, rows.write(plan.task), write)


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
    return answer(target.id, Outcome(commit, made_here=False), started)
