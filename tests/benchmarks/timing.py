"""Timing for busy machines: all candidates run in turn, in several rounds, and their ratios are compared."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Measure = Callable[[], float]
"""Does the work once, and answers the seconds that it took."""


@dataclass(frozen=True)
class Times:
    """Seconds of each candidate in each round."""

    rounds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        return median(self.rounds[name])

    def ratio(self, name: str, to: str) -> float:
        """The ratio of the times of two candidates: the median over the rounds."""
        pairs = zip(self.rounds[name], self.rounds[to], strict=True)
        return median(one / other for one, other in pairs)


def timed(work: Callable[[], object]) -> Measure:
    """Measure a callable of this process."""

    def measure() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return measure


def interleaved(rounds: int, candidates: Mapping[str, Measure], warm_up: int = 2) -> Times:
    """Run all candidates in turn, in a different order in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for number in range(warm_up + rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            took = candidates[name]()
            if number >= warm_up:
                seconds[name].append(took)
    return Times(seconds)
