"""Versions that meet a condition."""

import pytest

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus, VersionCondition


def seen(version: int) -> TableStatus:
    return TableStatus(TableId.parse("sales$orders"), "/lake/orders", version)


@pytest.mark.parametrize(("version", "holds"), [(4, False), (5, False), (6, True)])
def test_after_version_is_exclusive(version: int, holds: bool) -> None:
    assert VersionCondition(after_version=5).holds(seen(version)) is holds


@pytest.mark.parametrize(("version", "holds"), [(4, False), (5, True), (6, True)])
def test_min_version_is_inclusive(version: int, holds: bool) -> None:
    assert VersionCondition(min_version=5).holds(seen(version)) is holds


def test_both_bounds_must_hold() -> None:
    condition = VersionCondition(after_version=5, min_version=8)
    assert [condition.holds(seen(version)) for version in (5, 6, 8)] == [False, False, True]
    assert str(condition) == "a version greater than 5 and a version of at least 8"


def test_any_version_meets_no_bound() -> None:
    assert VersionCondition().holds(seen(1))


def test_a_table_without_a_version_never_ends_a_wait() -> None:
    assert not VersionCondition().holds(seen(0))
    assert not VersionCondition().holds(TableStatus(TableId.parse("sales$orders")))


@pytest.mark.parametrize(("version", "holds"), [(1, True), (5, False), (6, True)])
def test_another_version_may_be_a_smaller_one(version: int, holds: bool) -> None:
    assert VersionCondition(other_than=5).holds(seen(version)) is holds


def test_the_same_version_at_another_location_is_another_one() -> None:
    condition = VersionCondition(other_than=5, at_location="/lake/orders")
    assert not condition.holds(seen(5))
    assert condition.holds(TableStatus(TableId.parse("sales$orders"), "/lake/orders-2", 5))


def test_the_last_known_version_is_the_greatest_that_does_not_end_the_wait() -> None:
    assert VersionCondition().last_known is None
    assert VersionCondition(after_version=5, min_version=8, other_than=6).last_known == 7
