"""Growth of a process: what it uses at least, in its last ten minutes and in the first after its warm-up.

The least, since it is independent of how many requests or tasks a process has at a moment, but not of a leak.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from statistics import linear_regression

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Sample:
    """What a process uses at one time."""

    seconds: float
    """Since the test began."""
    memory: float
    """Mebibytes of its own: anonymous memory, without mapped files."""
    files: float
    threads: float
    connections: float
    """TCP, in any state."""


@dataclass(frozen=True)
class Growth:
    """One measure of a process."""

    process: str
    metric: str
    first: float
    last: float
    an_hour: float
    """The slope, fitted over all samples after the warm-up."""
    limit: float
    """What `last` may not exceed."""

    @property
    def is_excessive(self) -> bool:
        return self.last > self.limit

    def text(self) -> str:
        """The measure at the beginning and at the end, and its slope."""
        unit = " MiB" if self.metric == "memory" else ""
        return f"{self.metric} {self.first:.0f} -> {self.last:.0f}{unit} ({self.an_hour:+.1f} an hour)"

    def __str__(self) -> str:
        return f"{self.process}: {self.text()}, at most {self.limit:.0f}"


def growths(process: str, samples: Sequence[Sample], warm_up: float, window: float) -> Iterator[Growth]:
    """Compare the first and the last samples after the warm-up, for each measure; nothing if there are none.

    Args:
        process: its name, for messages.
        samples: in order.
        warm_up: seconds that don't count.
        window: seconds of samples whose minima are compared.
    """
    steady = [sample for sample in samples if sample.seconds >= warm_up]
    times = [sample.seconds for sample in steady]
    if not times or times[0] > warm_up + window:
        return
    metrics = [field.name for field in fields(steady[-1]) if field.name != "seconds"]
    for metric in metrics:
        values = [getattr(sample, metric) for sample in steady]
        first = min(v for v, t in zip(values, times, strict=True) if t <= warm_up + window)
        last = min(v for v, t in zip(values, times, strict=True) if t >= times[-1] - window)
        slope = linear_regression(times, values).slope * 3600
        yield Growth(process, metric, first, last, slope, first + _tolerance(metric, first))


def _tolerance(metric: str, first: float) -> float:
    if metric == "memory":
        return max(8, 0.05 * first)
    # The triggerer has a log open for each deferred task, of which there are a few more or less.
    return max(3, 0.1 * first) if metric == "files" else 3
