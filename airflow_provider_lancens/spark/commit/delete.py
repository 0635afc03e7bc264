"""Delete the rows that match a condition, exactly once. Without Spark: Lance only marks rows as deleted."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.commit.committer import CommitOutcome, Committer
from airflow_provider_lancens.spark.commit.table_change import CommitStep, RowDeletions, TableChange
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import (
    DELETION,
    Counts,
    KeyAttempts,
    KeyedCommit,
    KeyLookup,
    look_up,
)
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.options import OnExistingKey, WriteIdentity
from airflow_provider_lancens.spark.results import WriteResult
from airflow_provider_lancens.spark.table.opened_version import open_version, parse_filter
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.table.row_counts import matching_rows

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)


@observed("delete")
def delete_rows(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    where: str,
    *,
    key: str | None = None,
    on_existing_key: OnExistingKey = "redo",
    execution_id: str | None = None,
) -> WriteResult:
    """Delete the rows of a table that match a condition, in one commit.

    A commit is made even if no row matches, so that a later try of the same execution doesn't delete rows
    added since.

    Another execution that has committed under the key is treated by `on_existing_key`: ``redo`` and
    ``write_again`` delete the rows that match now, ``redo_if_changed`` only if the condition is another one,
    ``skip`` deletes nothing, and refuses another condition. ``write_again`` deletes also if it can't be
    determined whether the key was committed. The tries of one execution, which delete only once, have the
    same `execution_id`. See `Table.delete` for the other arguments and errors.

    Returns:
        The version without the rows. `deleted` is their number, `files` the number of fragments that
        contained them.
    """
    identity = WriteIdentity(key, where, on_existing_key, execution_id)
    with resolved_table(namespace, table) as target:
        lookup = look_up(target, identity, replaces_rows=False)
        if lookup.earlier is not None:
            result = lookup.found_result(lookup.earlier)
        else:
            outcome = _delete(lookup, where)
            result = outcome.commit.result(target, lookup.started, outcome.outcome, key=key)
    if result.outcome == "skipped":
        _log.warning(
            "table %s: nothing was deleted, since idempotency key %r was committed before: version %d "
            "deleted %d rows, and the table is at version %d; on_existing_key='redo' deletes again",
            result.table,
            key,
            result.version,
            result.deleted,
            lookup.version,
        )
    else:
        done = "deleted" if result.is_done else "an earlier try had deleted"
        _log.info("table %s: %s %d rows by version %d", result.table, done, result.deleted, result.version)
    return result


def planned_deletion(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, where: str, *, key: str | None = None
) -> WriteResult:
    """Count the rows that match a condition; see `delete_rows` for the arguments. The key isn't looked up."""
    started = time.monotonic()
    with resolved_table(namespace, table) as target:
        newest = open_version(target, None)
        condition = parse_filter(target, newest, where, "where").lance_sql
        counts = [matching_rows(fragment, condition) for fragment in newest.get_fragments()]
        version = newest.version
    rows = sum(counts)
    _log.info("table %s: %d rows of version %d would be deleted", target.id, rows, version)
    counted = Counts(files=sum(1 for count in counts if count), deleted=rows)
    return KeyedCommit(version, counts=counted, kind=DELETION).result(target, started, "planned", key=key)


def _delete(lookup: KeyLookup, where: str) -> CommitOutcome:
    target, base = lookup.target, lookup.latest
    if base is None:
        raise target.nothing_written()
    condition = parse_filter(target, base, where, "where")
    change = Deletion(str(target.id), base.version, base.schema, [], condition.lance_sql)
    with (
        KeyAttempts.started(target, lookup.write, lookup.latest) as attempts,
        acquire_lease(target.dataset).kept_alive(end=True) as lease,
    ):
        committer = Committer(target, lookup.write, Counts(), lease=lease, attempts=attempts)
        return committer.commit(change, looked_up_to=lookup.version)


@dataclass(frozen=True, slots=True)
class Deletion(TableChange):
    """Delete the rows that match a condition at commit time."""

    KIND = DELETION

    where: str
    """In Lance's SQL."""

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: rows that others committed meanwhile are deleted too if they match."""
        from lance import LanceOperation

        if latest is None:
            raise self._conflict("its dataset was removed")
        self.check_same_columns(latest)
        deleted = RowDeletions.where(latest, self.where)
        operation = LanceOperation.Delete(deleted.updated, deleted.removed, self.where)
        return CommitStep(operation, latest.version, Counts(files=deleted.fragments, deleted=deleted.rows))
