"""The steps of a write at which its driver may die, in their order."""

from collections.abc import Mapping
from typing import Any

import pytest

from airflow_provider_lancens.namespace.commits import Publication
from airflow_provider_lancens.namespace.manifests import Manifests
from airflow_provider_lancens.spark import ledger
from airflow_provider_lancens.spark.commit import Committer
from airflow_provider_lancens.spark.fence import CommitFence
from airflow_provider_lancens.spark.running import Running
from tests.integration.managed.deaths import Point
from tests.integration.spark.faults.tables import HIVE_MANAGED, HIVE_STORAGE, KINDS

BEFORE_THE_COMMIT = "before-the-commit"
STEPS: Mapping[str, Point] = {
    "before-any-fragment": Point(Running, "refresh", after=True, committed=False),
    BEFORE_THE_COMMIT: Point(Committer, "commit", after=False, committed=False),
    "when-its-manifest-is-staged": Point(CommitFence, "create_table_version", after=False, committed=False),
    "when-its-manifest-is-recorded": Point(Publication, "record", after=True, committed=False),
    "when-the-metastore-has-advanced": Point(Publication, "finish", after=False, committed=True),
    "before-its-staged-manifest-goes": Point(Manifests, "remove", after=False, committed=True),
    "before-its-key-is-noted": Point(ledger, "remember", after=False, committed=True),
}
_OF_MANAGED_TABLES = {step for step, point in STEPS.items() if point.owner is Publication}


def steps_of(kind: str) -> list[str]:
    """Those that a write to such a table has."""
    return [step for step in STEPS if kind == HIVE_MANAGED or step not in _OF_MANAGED_TABLES]


def at_each_step(everyday: str, *others: str) -> list[Any]:
    """Every kind of table, step and way of writing; one way, and tables unlike each other, are everyday."""
    return [
        pytest.param(
            kind, step, way, marks=() if way == everyday and kind != HIVE_STORAGE else pytest.mark.long
        )
        for way in (everyday, *others)
        for kind in KINDS
        for step in steps_of(kind)
    ]
