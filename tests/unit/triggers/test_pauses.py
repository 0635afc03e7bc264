"""How long a poll pauses between two looks."""

import pytest

from airflow_provider_lancens.triggers.pauses import pause


def longest(interval: float, failures: int) -> float:
    return max(pause(interval, failures) for _ in range(200))


def test_looks_that_are_answered_come_at_the_interval_but_never_all_at_once() -> None:
    pauses = {pause(10, 0) for _ in range(50)}
    assert len(pauses) > 1
    assert all(9 <= seconds <= 11 for seconds in pauses)


def test_looks_that_are_not_answered_come_later_and_later() -> None:
    assert longest(5, 0) < min(pause(5, 2) for _ in range(200)) < longest(5, 2) <= 22


@pytest.mark.parametrize(("interval", "most"), [(5, 66), (300, 330)])
def test_a_long_outage_does_not_put_the_next_look_off_for_ever(interval: float, most: float) -> None:
    assert longest(interval, 10_000) <= most
