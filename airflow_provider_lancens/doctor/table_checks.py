"""A table: whether metastore and storage agree, and what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from lance_namespace import ListTablesRequest
from lance_namespace.errors import InvalidInputError, NamespaceNotFoundError

from airflow_provider_lancens.doctor.findings import Finding, run
from airflow_provider_lancens.identifiers import TableId

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.spark.maintenance.table_state import TableState

REPAIRS = {
    "storage_ahead": "Run LanceCompareTableOperator with if_inconsistent='adopt'.",
    "metastore_reverted": "Run LanceCompareTableOperator with if_inconsistent='adopt'.",
    "metastore_ahead": "Restore the missing manifest, or adopt the storage's version.",
    "diverged": "Decide which commit to keep; see the page on managed tables.",
    "no_version": "Run LanceCompareTableOperator with if_inconsistent='adopt'.",
    "files_missing": "Restore a version whose files are complete.",
}
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)


def check_tables(hook: LanceHook, name: str) -> Iterator[Finding]:
    """Check the table of this identifier, or all tables of the namespace of this identifier."""
    for table in _tables_of(hook, name):
        yield from run(f"table {table}", partial(check_table, hook, table))


def check_table(hook: LanceHook, table: TableId) -> Iterator[Finding]:
    """Check one table, without changing it."""
    from airflow_provider_lancens.spark.maintenance.table_state import table_state

    subject, namespace = f"table {table}", hook.get_reader()
    compared = namespace.compare_table(table.parts)
    if compared.verdict == "consistent":
        yield Finding("ok", subject, compared.explanation)
    else:
        yield Finding("problem", subject, compared.explanation, REPAIRS.get(compared.verdict, ""))
    if not compared.storage_version:
        return
    with table_state(namespace, table) as state:
        yield from check_state(subject, state)


def check_state(subject: str, state: TableState) -> Iterator[Finding]:
    """Check what the storage has of a table's newest version: fragments, indices, versions, leases."""
    yield from _check_fragments(subject, state)
    yield from _check_indices(subject, state)
    yield from _check_versions(subject, state)
    yield from _check_leases(subject, state)


def _tables_of(hook: LanceHook, name: str) -> list[TableId]:
    request = ListTablesRequest(id=name.split("$"))
    try:
        found = hook.get_reader().list_tables(request).tables
    except (NamespaceNotFoundError, InvalidInputError):  # then it is the name of a table
        return [TableId.parse(name)]
    return [TableId.parse(f"{name}${table}") for table in sorted(found)]


def _check_fragments(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.spark.maintenance import CompactionOptions, Thresholds

    decision = state.fragmentation(CompactionOptions()).decide(Thresholds(min_small_fragments=20))
    advice = "Compact it, with LanceMaintainTableOperator." if decision.is_due else ""
    yield Finding("warning" if decision.is_due else "ok", subject, decision.reason, advice)


def _check_indices(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.spark.maintenance.maintenance_options import DEFAULT_MAX_DELETED_SHARE
    from airflow_provider_lancens.spark.maintenance.rewritten_columns import has_old_values
    from airflow_provider_lancens.spark.table.index_coverage import deleted_share, misses_rows

    rebuild = "Rebuild it, with LanceCreateIndexOperator or LanceMaintainTableOperator."
    for index in state.dataset.describe_indices():
        named = f"index {index.name!r} on {', '.join(index.field_names)}"
        if misses_rows(state.dataset, index.segments):
            yield Finding(
                "problem",
                subject,
                f"queries by {named} don't find all rows: it "
                "claims to cover rows that were written after it was built",
                rebuild,
            )
        if has_old_values(state.dataset, index):
            yield Finding(
                "problem",
                subject,
                f"queries by {named} may find rows by values "
                "that they had before: another client has extended it after an update",
                rebuild,
            )
        share = deleted_share(state.dataset, index)
        if share > DEFAULT_MAX_DELETED_SHARE:
            yield Finding(
                "warning",
                subject,
                f"{share:.1%} of the rows in {named} are "
                "deleted: queries for the nearest rows can return fewer than they ask for",
                "Rebuild it, with LanceMaintainTableOperator, or LanceCreateIndexOperator with "
                'if_exists="replace".',
            )


def _check_versions(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.spark.maintenance import Thresholds

    decision = state.old_versions(_WEEK, 1).decide(Thresholds(min_removable_versions=1000))
    advice = "Clean up its versions, with LanceMaintainTableOperator." if decision.is_due else ""
    yield Finding("warning" if decision.is_due else "ok", subject, decision.reason, advice)


def _check_leases(subject: str, state: TableState) -> Iterator[Finding]:
    from airflow_provider_lancens.namespace.storage.write_leases import leases_of

    limit = datetime.now(UTC) - _DAY
    dead = [lease for lease in leases_of(state.target.dataset.manifests) if lease.refreshed < limit]
    if dead:
        yield Finding(
            "warning",
            subject,
            f"{len(dead)} writes have sent no heartbeat for a day, and left files",
            "Run LanceRemoveOrphansOperator, or LanceMaintainTableOperator with orphans_older_than.",
        )
