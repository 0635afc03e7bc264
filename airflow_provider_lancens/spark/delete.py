"""Delete the rows that meet a condition, once. No Spark: Lance marks rows as deleted, and writes none."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_namespace.errors import InvalidInputError, TableVersionNotFoundError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark import ledger
from airflow_provider_lancens.spark.answers import result_of
from airflow_provider_lancens.spark.changes import Change, Step
from airflow_provider_lancens.spark.commit import Committer, Outcome
from airflow_provider_lancens.spark.history import Counts
from airflow_provider_lancens.spark.naming import WriteName
from airflow_provider_lancens.spark.options import WriteResult
from airflow_provider_lancens.spark.reader import check_filter
from airflow_provider_lancens.spark.running import running
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described

if TYPE_CHECKING:
    from lance import FragmentMetadata, LanceDataset
    from lance.fragment import LanceFragment
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)


def delete_rows(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    where: str,
    *,
    idempotency_key: str | None = None,
) -> WriteResult:
    """Delete the rows of a table that meet a condition, as one commit.

    It is committed also where no row meets it, so that a rerun under the key, when more rows have
    come, deletes none of them.

    Args:
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        where: a condition in Lance's SQL, such as ``month = 3``.
        idempotency_key: what this deletion is; None makes every call a new one.

    Returns:
        The version without the rows. `rows` is how many were deleted, `files` in how many fragments.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidInputError: (13) the condition can't be understood, or the key was committed with another.
        ConcurrentModificationError: (14) others were always faster.
    """
    started = time.monotonic()
    name = WriteName.of(idempotency_key, fingerprint=where)
    with described(namespace, table) as target:
        outcome = _delete(target, where, name)
    result = result_of(target.id, outcome, started)
    done = "deleted" if result.committed else "an earlier run had deleted"
    _log.info("table %s: %s %d rows by version %d", result.table, done, result.rows, result.version)
    return result


def _delete(target: Target, where: str, name: WriteName) -> Outcome:
    base = target.open_latest()
    if base is None:
        raise TableVersionNotFoundError(f"table {target.id} is declared, but nothing was written to it yet")
    found = ledger.find(target, base, name.key)
    if found is not None and name.is_made_by(found, str(target.id)):
        ledger.remember(target, name.key, found)
        return Outcome(found, made_here=False)
    if not where.strip():
        raise InvalidInputError(f"table {target.id}: where: expected a condition, got a blank")
    check_filter(target, base, where)
    change = Deletion(str(target.id), base.version, base.schema, [], where)
    with running(target.dataset) as write:
        committer = Committer(target, name.key, Counts(), fingerprint=name.fingerprint, write=write)
        return committer.commit(change, looked_up_to=base.version)


@dataclass(frozen=True, slots=True)
class Deletion(Change):
    """Delete what meets a condition when it is committed."""

    where: str

    def onto(self, latest: LanceDataset | None) -> Step:
        """See `Change.onto`: rows that others brought meanwhile are looked at too."""
        from lance import LanceOperation

        if latest is None:
            raise self._overtaken("its data set was removed")
        self.check_same_columns(latest)
        thinned = [_Thinned(fragment, fragment.delete(self.where)) for fragment in latest.get_fragments()]
        changed = [one for one in thinned if one.rows]
        operation = LanceOperation.Delete(
            [one.after for one in changed if one.after is not None],
            [one.fragment.fragment_id for one in changed if one.after is None],
            self.where,
        )
        return Step(operation, latest.version, Counts(sum(one.rows for one in changed), len(changed)))


@dataclass(frozen=True, slots=True)
class _Thinned:
    fragment: LanceFragment
    after: FragmentMetadata | None
    """None where no row is left."""

    @property
    def rows(self) -> int:
        """How many were deleted."""
        before: int = self.fragment.metadata.num_rows
        return before - (0 if self.after is None else self.after.num_rows)
