"""Output of benchmark results."""

from collections.abc import Callable, Mapping

import pytest

from tests.benchmarks.timing import Times


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Print a table of medians, and the ratio of the first to each other."""

    def print_table(title: str, times: Times, calls: Mapping[str, int] | None = None) -> None:
        first = next(iter(times.rounds))
        with capsys.disabled():
            print(f"\n{title}")  # noqa: T201
            for name in times.rounds:
                count = f"{calls[name]:5} calls" if calls and name in calls else ""
                ratio = f"{first} / {name} = {times.ratio(first, name):.3f}" if name != first else ""
                print(f"  {name:10} {1000 * times.median(name):10.2f} ms  {ratio:28} {count}")  # noqa: T201

    return print_table
