"""Which version ends a wait."""

import pytest

from airflow_provider_lancens.hooks.versions import TableVersion, VersionCondition


def seen(version: int) -> TableVersion:
    return TableVersion("sales$orders", version, "/lake/orders")


@pytest.mark.parametrize(("version", "holds"), [(4, False), (5, False), (6, True)])
def test_after_a_version_means_a_greater_one(version: int, holds: bool) -> None:
    assert VersionCondition(after_version=5).holds(seen(version)) is holds


@pytest.mark.parametrize(("version", "holds"), [(4, False), (5, True), (6, True)])
def test_at_least_a_version_means_that_one_too(version: int, holds: bool) -> None:
    assert VersionCondition(min_version=5).holds(seen(version)) is holds


def test_with_both_bounds_both_have_to_hold() -> None:
    condition = VersionCondition(after_version=5, min_version=8)
    assert [condition.holds(seen(version)) for version in (5, 6, 8)] == [False, False, True]
    assert str(condition) == "a version greater than 5 and a version of at least 8"


def test_without_a_bound_any_version_will_do() -> None:
    assert VersionCondition().holds(seen(1))


def test_a_table_without_a_version_never_ends_a_wait() -> None:
    assert not VersionCondition().holds(None)


@pytest.mark.parametrize(("version", "holds"), [(1, True), (5, False), (6, True)])
def test_another_version_may_be_a_smaller_one(version: int, holds: bool) -> None:
    assert VersionCondition(other_than=5).holds(seen(version)) is holds


def test_the_last_known_version_is_the_greatest_that_does_not_end_the_wait() -> None:
    assert VersionCondition().last_known is None
    assert VersionCondition(after_version=5, min_version=8, other_than=6).last_known == 7
