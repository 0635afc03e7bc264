"""Stage what a write has written: as a version that readers find only by its number."""

from __future__ import annotations

import uuid
from dataclasses import replace

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.version_tags import create_tag
from airflow_provider_lancens.spark.commit.committer import CommitOutcome
from airflow_provider_lancens.spark.commit.table_changes import TableChange
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.keys import Counts, KeyedCommit, KeyedWrite
from airflow_provider_lancens.spark.publish.staged_versions import ChangeSpec, tag_of
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


def stage(
    target: ResolvedTable,
    write: KeyedWrite,
    change: TableChange,
    counts: Counts,
    spec: ChangeSpec,
    lease: WriteLease,
) -> CommitOutcome:
    """Stage a change: commit it as a detached version that follows the version onto which it was written.

    That version is tagged, so that no clean-up removes it or its files while they are needed.

    Args:
        target: the table.
        write: what identifies the write.
        change: the fragments, and what they do.
        counts: what was written.
        spec: how the change is made again when it is published.
        lease: the lease of the write.

    Raises:
        ConcurrentModificationError: (14) the table was removed or restored, or that version cleaned up.
    """
    from lance import LanceDataset, Transaction

    if (target.latest_version() or 0) < spec.base:
        raise _gone(target, spec.base)
    # A detached version concerns no version authority: it is committed by path.
    try:
        base = replace(target.dataset, decider=None).open(spec.base)
    except ValueError as error:
        if target.dataset.manifests.find(spec.base) is not None:
            raise
        raise _gone(target, spec.base) from error
    step = change.apply_to(base)
    commit = KeyedCommit(
        spec.base, str(uuid.uuid4()), step.counts_with(counts), write.fingerprint, kind=change.kind
    )
    properties = {**commit.as_properties(write.key), **spec.as_properties()}
    transaction = Transaction(spec.base, step.operation, commit.uuid, properties)
    lease.check()
    try:
        create_tag(base, target.dataset.manifests, tag_of(commit.uuid), spec.base)
    except spec_errors.TableVersionNotFoundError as error:
        raise _gone(target, spec.base) from error
    made = LanceDataset.commit(base, transaction, read_version=spec.base, detached=True)
    return CommitOutcome(replace(commit, version=made.version), made_here=True)


def _gone(target: ResolvedTable, version: int) -> spec_errors.ConcurrentModificationError:
    return spec_errors.ConcurrentModificationError(
        f"table {target.id}: version {version}, on which this write is based, was removed meanwhile; "
        "nothing was staged, run it again"
    )
