"""A table under maintenance: opened at its newest version, with commits through its version authority."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.lance_errors import is_conflict, panics_as_errors
from airflow_provider_lancens.spark.commit.write_lease import WriteLease, acquire_lease
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef, VersionAuthority
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, ResolvedTable, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.commit.leased_commits import LeasedCommits


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """A table, and its opened dataset."""

    target: ResolvedTable
    dataset: LanceDataset
    """Opened at the newest version; commits through it go to the version authority, and only while the lease
    is held. After a commit it is at the version that the commit made."""
    version: int
    """The version that it was opened at."""
    lease: WriteLease
    _commits: LeasedCommits = field(repr=False)

    def at_newest(self) -> Self:
        """Return the table opened at the version that is newest now."""
        version = self.target.latest_version() or self.version
        return replace(self, dataset=self.dataset.checkout_version(version), version=version)

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        """Convert Lance's errors of a commit to the specification's errors.

        Raises:
            ConcurrentModificationError: (14) it conflicts with another commit, or a clean-up considered this
                job dead; nothing was committed.
            InvalidTableStateError: (19) a direct writer bypassed the metastore that decides the versions.
            ServiceUnavailableError: (17) the storage or the metastore failed; the commit may have been made.
        """
        try:
            with panics_as_errors():
                yield
        except (OSError, RuntimeError) as error:
            if not is_conflict(error):
                if not self._commits.has_failed:
                    raise  # the storage's, see `storage_failures`
                raise self._commits.error_of(error) from None
            raise spec_errors.ConcurrentModificationError(
                f"table {self.target.id}: other writers changed what this is based on since version "
                f"{self.version}; nothing was committed, run it again ({error})"
            ) from error


@contextlib.contextmanager
def maintained(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> Iterator[MaintainedTable]:
    """Open a declared table for maintenance.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.

    Raises:
        InvalidInputError: (13) `table` isn't a valid identifier.
        TableNotFoundError: (4) it isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        ConcurrentModificationError: (14) others committed, and cleaned up, while it was being opened.
        InvalidTableStateError: (19) the metastore decides its versions, and a direct writer bypassed it.
    """
    from airflow_provider_lancens.spark.commit.leased_commits import LeasedCommits

    with resolved_table(namespace, table) as target:
        version = written_version(target)
        with acquire_lease(target.dataset).kept_alive(end=True) as lease:
            commits = LeasedCommits(target.versions, lease)
            # Also for a storage-managed table: by itself Lance would rebase the commit of a driver that was
            # suspended, regardless of what a clean-up has removed meanwhile.
            dataset = replace(target.dataset, decider=VersionAuthority(commits, target.id.parts))
            yield MaintainedTable(target, _opened(target, dataset, version), version, lease, commits)


def _opened(target: ResolvedTable, dataset: DatasetRef, version: int) -> LanceDataset:
    try:
        return dataset.open(version)
    except ValueError as error:
        if target.latest_version() == version:
            raise
        raise spec_errors.ConcurrentModificationError(
            f"table {target.id}: version {version} was replaced and cleaned up while it was being opened; "
            "nothing was changed, run it again"
        ) from error


def written_version(target: ResolvedTable) -> int:
    """Return the newest version of a table that something was written to.

    Raises:
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidTableStateError: (19) the metastore decides its versions, and a direct writer bypassed it.
    """
    version = target.latest_version()
    if version is None:
        raise spec_errors.TableVersionNotFoundError(
            f"table {target.id} is declared, but nothing has been written to it yet"
        )
    target.check_not_bypassed(version)
    return version
