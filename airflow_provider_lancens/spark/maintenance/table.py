"""A table under maintenance: opened at its newest version, and committed to whoever decides its versions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    TableVersionNotFoundError,
)

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.manifests import Manifests
from airflow_provider_lancens.spark.dataset import Decider
from airflow_provider_lancens.spark.maintenance.witness import CommitWitness
from airflow_provider_lancens.spark.running import running
from airflow_provider_lancens.spark.target import NamespaceSpec, Target, described

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance_namespace import LanceNamespace

_CONFLICT = "commit conflict"


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """A table, and its data set as the driver has it in hand."""

    target: Target
    dataset: LanceDataset
    """At the version that was the newest; what commits through it, commits through the metastore where that
    decides. After a commit it is at the version that this made."""
    version: int
    """The version that it was opened at."""
    _witness: CommitWitness = field(repr=False)

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        """Turn Lance's errors about a commit into the specification's.

        Raises:
            ConcurrentModificationError: (14) others changed what this is about; nothing was committed.
            InvalidTableStateError: (19) a writer by path bypassed the metastore that decides the versions.
            ServiceUnavailableError: (17) the storage or the metastore failed; the commit may be there.
        """
        try:
            yield
        except OSError as error:
            # Lance has a class of its own for it, but not everywhere does it raise that.
            if _CONFLICT not in str(error).lower():
                raise self._witness.verdict(error) from error
            raise ConcurrentModificationError(
                f"table {self.target.id}: others changed what this was made of since version {self.version}; "
                f"nothing was committed, run it again ({error})"
            ) from error


@contextlib.contextmanager
def maintained(namespace: NamespaceSpec | LanceNamespace, table: TableId | str) -> Iterator[MaintainedTable]:
    """Open a declared table for maintenance.

    Args:
        namespace: the namespace that knows the table, or the words that make one.
        table: its identifier, such as ``db$table``.

    Raises:
        InvalidInputError: (13) `table` can't be an identifier.
        TableNotFoundError: (4) it isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        InvalidTableStateError: (19) the metastore decides its versions, and a writer by path bypassed it.
    """
    with described(namespace, table) as target:
        version = target.latest_version()
        if version is None:
            raise TableVersionNotFoundError(
                f"table {target.id} is declared, but nothing was written to it yet"
            )
        witness = CommitWitness(target.versions)
        dataset = target.dataset
        if dataset.decider is not None:
            _check_not_bypassed(target, version)
            dataset = replace(dataset, decider=Decider(witness, dataset.decider.table_id))
        with running(target.dataset):
            yield MaintainedTable(target, dataset.open(version), version, witness)


def _check_not_bypassed(target: Target, seen: int) -> None:
    stored = Manifests(target.dataset.location, target.dataset.storage_options).newest() or 0
    # Of the two looks, the second is the metastore's: a commit in between is none by path.
    if stored > seen and stored > (decided := target.latest_version() or 0):
        raise InvalidTableStateError(
            f"table {target.id}: version {stored} lies on the storage, but the metastore is at {decided}: a "
            "writer went by path; compare, then adopt its versions or remove them"
        )
