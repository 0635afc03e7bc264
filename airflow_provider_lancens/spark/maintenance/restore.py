"""Find versions whose files were removed, and restore one that is complete. No Spark."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.storage.missing_files import StoredVersions, example_of
from airflow_provider_lancens.spark.commit.single_version_commit import LANCE_ERRORS, SingleVersionCommit
from airflow_provider_lancens.spark.keys import IDEMPOTENCY_KEY, KeyedCommit, record_restores
from airflow_provider_lancens.spark.maintenance.maintenance_results import (
    FileCheck,
    RestoreResult,
    UndoneCommit,
)
from airflow_provider_lancens.spark.table.history import read_transaction
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_log = logging.getLogger(__name__)


def check_files(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> FileCheck:
    """Find files that a version of a table refers to and the storage lacks.

    Every version is opened, newest first, so it takes long on a table with many.

    Args:
        namespace: the namespace that knows the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.

    Returns:
        The versions that lack files, and the newest that doesn't.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        InvalidInputError: (13) `table` can't be an identifier.
        ServiceUnavailableError: (17) the storage or the metastore didn't answer.
        InvalidTableStateError: (19) metastore and storage disagree on which version is the newest.
    """
    with resolved_table(namespace, table) as target:
        newest = target.latest_version()
        versions = sorted(target.dataset.manifests.all(), reverse=True) if newest else []
        checked = {version: _missing(target, version) for version in versions if version <= (newest or 0)}
        missing = {version: paths for version, paths in checked.items() if paths}
        whole = max((version for version, paths in checked.items() if not paths), default=None)
        return FileCheck(str(target.id), newest, len(checked), missing, whole)


def restore_version(
    namespace: NamespaceSpec | LanceNamespace, table: TableId | str, version: int | None = None
) -> RestoreResult:
    """Restore an older version by a new commit; nothing is removed.

    The commits after it are undone. Their idempotency keys count as never committed, so the tasks that made
    them write their rows again when they are cleared.

    Args:
        namespace: the namespace that knows the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        version: the version to restore; None is the newest one that lacks no file, and commits nothing if
            that is already the newest version.

    Returns:
        The version that was made, and the commits that it undoes.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) there is no such version, or none at all.
        InvalidInputError: (13) `table` can't be an identifier.
        ConcurrentModificationError: (14) others committed meanwhile; nothing was committed.
        InvalidTableStateError: (19) the version lacks files, or every version does; or metastore and storage
            disagree on which version is the newest.
    """
    started = time.monotonic()
    with resolved_table(namespace, table) as target:
        latest = target.open_latest()
        if latest is None:
            raise TableVersionNotFoundError(
                f"table {target.id} is declared, but nothing has been written to it yet"
            )
        wanted = _newest_whole(target, latest) if version is None else version
        target.check_version(wanted)
        _check_whole(target, wanted)
        undone = _commits_after(latest, wanted)
        restored = wanted != latest.version
        made = _restore(target, latest.version, wanted) if restored else latest.version
        if restored:
            _check_whole(target, made)  # a clean-up may have removed that version meanwhile
            record_restores(target, target.open(made))
        seconds = round(time.monotonic() - started, 3)
        result = RestoreResult(str(target.id), made, wanted, undone, seconds, restored)
    _log.info("%s", _sentence(result))
    return result


def _newest_whole(target: ResolvedTable, latest: LanceDataset) -> int:
    versions = sorted((v for v in target.dataset.manifests.all() if v <= latest.version), reverse=True)
    found = next((v for v in versions if not _missing(target, v)), None)
    if found is None:
        raise InvalidTableStateError(
            f"table {target.id}: each of its {len(versions)} versions refers to files that were removed; "
            "restore them from a backup, or overwrite the table"
        )
    return found


def _check_whole(target: ResolvedTable, version: int) -> None:
    if missing := _missing(target, version):
        raise InvalidTableStateError(
            f"table {target.id}: version {version} refers to files that were removed: "
            f"{example_of(missing)}; choose an older version that check_files reports as complete"
        )


def _restore(target: ResolvedTable, latest: int, wanted: int) -> int:
    from lance import LanceOperation, Transaction

    fence = SingleVersionCommit(target.versions, None, target, latest)
    try:
        fence.commit(Transaction(latest, LanceOperation.Restore(wanted)))
    except LANCE_ERRORS as error:
        if target.latest_version() == latest:
            raise fence.error_of(error) from error
        raise ConcurrentModificationError(
            f"table {target.id}: other writers committed after version {latest}; nothing was "
            "restored, run it again"
        ) from error
    return latest + 1


def _commits_after(latest: LanceDataset, version: int) -> tuple[UndoneCommit, ...]:
    return tuple(_undone(latest, undone) for undone in range(version + 1, latest.version + 1))


def _undone(latest: LanceDataset, version: int) -> UndoneCommit:
    transaction = read_transaction(latest, version)
    if transaction is None:
        return UndoneCommit(version, "", None, 0)
    key = (transaction.transaction_properties or {}).get(IDEMPOTENCY_KEY)
    rows = KeyedCommit.of(version, transaction).counts.rows
    return UndoneCommit(version, type(transaction.operation).__name__, key, rows)


def _missing(target: ResolvedTable, version: int) -> tuple[str, ...]:
    stored = StoredVersions(target.dataset.location, target.dataset.storage_options)
    try:
        return stored.missing_files_of(target.open(version))
    except ValueError:
        if target.dataset.manifests.find(version) is not None:
            raise
        return (f"the manifest of version {version}",)  # cleaned up meanwhile


def _sentence(result: RestoreResult) -> str:
    if not result.restored:
        return f"table {result.table}: no file is missing, still at version {result.version}"
    keys = ", ".join(one.idempotency_key for one in result.undone if one.idempotency_key)
    return (
        f"table {result.table}: restored version {result.restored_version} as version "
        f"{result.version}; {len(result.undone)} commits were undone, run these writes again: "
        f"{keys or 'none of them has a key'}"
    )
