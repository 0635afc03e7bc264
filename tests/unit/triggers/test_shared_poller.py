"""Time between two polls."""

import pytest

from airflow_provider_lancens.triggers.shared_poller import pause


def longest(interval: float, failures: int) -> float:
    return max(pause(interval, failures) for _ in range(200))


def test_successful_polls_repeat_at_the_interval_with_jitter() -> None:
    pauses = {pause(10, 0) for _ in range(50)}
    assert len(pauses) > 1
    assert all(9 <= seconds <= 11 for seconds in pauses)


def test_failed_polls_back_off_exponentially() -> None:
    assert longest(5, 0) < min(pause(5, 2) for _ in range(200)) < longest(5, 2) <= 22


@pytest.mark.parametrize(("interval", "most"), [(5, 66), (300, 330)])
def test_the_backoff_is_limited(interval: float, most: float) -> None:
    assert longest(interval, 10_000) <= most


def test_an_interval_of_zero_does_not_poll_without_a_pause() -> None:
    assert min(pause(0, 0) for _ in range(200)) >= 0.045
    assert pause(0, 3) > pause(0, 0)
