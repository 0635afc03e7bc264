"""The steps of a write at which its driver may be killed, in order."""

from collections.abc import Mapping
from typing import Any

import pytest

from airflow_provider_lancens.namespace.managed.publication import Publication
from airflow_provider_lancens.namespace.storage.manifests import Manifests
from airflow_provider_lancens.spark.commit.committer import Committer
from airflow_provider_lancens.spark.commit.single_version_commit import SingleVersionCommit
from airflow_provider_lancens.spark.commit.write_lease import WriteLease
from airflow_provider_lancens.spark.keys import KeyAttempts
from airflow_provider_lancens.spark.maintenance.table_state import MaintainedTable
from tests.integration.managed.commit_points import Point
from tests.integration.spark.faults.table_kinds import HIVE_STORAGE, KINDS, MANAGED

BEFORE_THE_COMMIT = "before-the-commit"
STEPS: Mapping[str, Point] = {
    "before-any-fragment": Point(WriteLease, "kept_alive", after=False, committed=False),
    BEFORE_THE_COMMIT: Point(Committer, "commit", after=False, committed=False),
    "when-its-key-is-announced": Point(KeyAttempts, "announce", after=True, committed=False),
    "when-its-manifest-is-staged": Point(
        SingleVersionCommit, "create_table_version", after=False, committed=False
    ),
    "when-its-manifest-is-recorded": Point(Publication, "record", after=True, committed=False),
    "when-the-metastore-has-advanced": Point(Publication, "finish", after=False, committed=True),
    "before-its-staged-manifest-goes": Point(Manifests, "remove", after=False, committed=True),
    "before-its-key-is-confirmed": Point(KeyAttempts, "conclude", after=False, committed=True),
}
_OF_MANAGED_TABLES = {step for step, point in STEPS.items() if point.owner is Publication}


def steps_of(kind: str) -> list[str]:
    """The steps of a write to such a table."""
    return [step for step in STEPS if kind in MANAGED or step not in _OF_MANAGED_TABLES]


def at_each_step(everyday: str, *others: str) -> list[Any]:
    """Each kind of table, step and way to write; a selection of them runs in everyday tests."""
    return [
        pytest.param(
            kind, step, way, marks=() if way == everyday and kind != HIVE_STORAGE else pytest.mark.long
        )
        for way in (everyday, *others)
        for kind in KINDS
        for step in steps_of(kind)
    ]


AFTER_THE_LEASE_CHECK = "after-the-lease-check"
MAINTENANCE_COMMIT = "before-its-maintenance-commits"
FREEZING_STEPS: Mapping[str, Point] = {
    **STEPS,
    AFTER_THE_LEASE_CHECK: Point(WriteLease, "check", after=True, committed=False),
    "when-its-staged-manifest-is-read": Point(Manifests, "create", after=False, committed=False),
    MAINTENANCE_COMMIT: Point(MaintainedTable, "committing", after=False, committed=False),
}
"""Those at which a driver is frozen, and taken for dead."""


def freezing_steps_of(kind: str, *, maintains: bool) -> list[str]:
    """The steps at which a change of such a table can be suspended; of maintenance, the first commit's."""
    others = {
        step
        for step, point in FREEZING_STEPS.items()
        if point.owner in (Committer, SingleVersionCommit, KeyAttempts)
    }
    steps = [step for step in FREEZING_STEPS if kind in MANAGED or step not in _OF_MANAGED_TABLES]
    if maintains:
        return [step for step in steps if step not in others and not FREEZING_STEPS[step].committed]
    return [step for step in steps if step != MAINTENANCE_COMMIT]
