"""Clean-up: old versions go, and the files that only they refer to. One process does it, without Spark."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import InvalidInputError, ServiceUnavailableError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.maintenance.options import (
    DEFAULT_AGE,
    CleanUpResult,
    check_age,
    check_positive,
)
from airflow_provider_lancens.spark.maintenance.table import MaintainedTable, maintained
from airflow_provider_lancens.spark.target import NamespaceSpec

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)


def clean_up_versions(
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    *,
    older_than: timedelta = DEFAULT_AGE,
    keep_versions: int = 1,
    dry_run: bool = False,
) -> CleanUpResult:
    """Remove old versions of a table, and the files that only they refer to.

    A version stays where it is the newest, young enough, among the newest few, or tagged. Where the metastore
    decides the versions, the newest is the one that it says, and what stopped halfway on its way there is
    finished first. Files that no version refers to go when they are a week old, not before: a writer may be
    about to commit them.

    Args:
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.
        older_than: how old a version has to be; a reader without a tag has this long.
        keep_versions: how many of the newest stay, however old.
        dry_run: only say what would go.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidInputError: (13) an argument is wrong.
        ServiceUnavailableError: (17) the storage or the metastore failed; a part may be gone.
        InvalidTableStateError: (19) metastore and storage disagree on which version is the newest.
    """
    started = time.monotonic()
    _check(older_than, keep_versions)
    with maintained(namespace, table) as opened:
        tagged = _tagged(opened)
        removed = _clean_up(opened, older_than, keep_versions, dry_run)
        result = CleanUpResult(
            table=str(opened.target.id),
            version=opened.version,
            versions=removed.old_versions,
            files=_files(removed),
            bytes=removed.bytes_removed,
            tagged=tagged,
            seconds=round(time.monotonic() - started, 3),
            dry_run=dry_run,
        )
    _log.info("%s", _sentence(result))
    return result


def _clean_up(opened: MaintainedTable, older_than: timedelta, keep_versions: int, dry_run: bool) -> Any:
    limits: dict[str, Any] = {
        "older_than": older_than,
        "retain_versions": keep_versions,
        "error_if_tagged_old_versions": False,
    }
    try:
        if dry_run:
            return opened.dataset.explain_cleanup_old_versions(**limits).stats
        removed = opened.dataset.cleanup_old_versions(**limits)
    except OSError as error:
        raise ServiceUnavailableError(f"table {opened.target.id}: the storage failed: {error}") from error
    if removed.failed_deletes:
        raise ServiceUnavailableError(
            f"table {opened.target.id}: the storage refused to delete {removed.failed_deletes} files; "
            "run it again"
        )
    return removed


def _tagged(opened: MaintainedTable) -> int:
    versions = {tag["version"] for tag in opened.dataset.tags.list().values()}
    return len(versions - {opened.version})


def _files(removed: Any) -> int:
    return int(removed.data_files_removed + removed.index_files_removed + removed.deletion_files_removed)


def _sentence(result: CleanUpResult) -> str:
    did = "would remove" if result.dry_run else "removed"
    return (
        f"table {result.table}: {did} {result.versions} versions, "
        f"{result.files} files, {result.bytes / 1e6:,.1f} MB; tags keep {result.tagged} older versions"
    )


def _check(older_than: timedelta, keep_versions: int) -> None:
    try:
        check_age("older_than", older_than)
        check_positive("keep_versions", keep_versions)
    except ValueError as error:
        raise InvalidInputError(str(error)) from error
