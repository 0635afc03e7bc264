"""What benchmarks measure, kept as JSON: docs/performance.md shows plots and tables of it.

``LANCENS_FIGURES`` names the folder to write to; without it, nothing is kept. Each figure has a file of its
own, with the machine and the date, so that one of them can be measured again without the others. A figure
that is kept begins when nothing else runs.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.machine import load, this_machine, wait_until_quiet
from tests.benchmarks.timing import Times

FOLDER = "LANCENS_FIGURES"

At = float | str
"""Where on the horizontal axis: a number, or the name of a kind of data."""
Point = tuple[At, float, float, float]
"""Median, lowest and highest value at one place."""


def _load_at_start() -> float:
    """The load when a figure begins: below 1 if it is kept."""
    if FOLDER in os.environ:
        wait_until_quiet()
    return load()


@dataclass
class Figure:
    """Series of values over one axis, in one or more units."""

    name: str
    axis: str
    units: dict[str, dict[str, list[Point]]] = field(default_factory=dict)
    ratios: dict[str, list[tuple[At, float]]] = field(default_factory=dict)
    """Ratios of times that were measured in turn: the median over the rounds."""
    load_before: float = field(default_factory=_load_at_start)

    def add(self, unit: str, series: str, at: At, values: Sequence[float]) -> None:
        """Add what was measured of one series at one place."""
        point = (at, *(_rounded(value) for value in (median(values), min(values), max(values))))
        self.units.setdefault(unit, {}).setdefault(series, []).append(point)

    def add_times(self, at: At, times: Times, *compared: tuple[str, str]) -> None:
        """Add the seconds of all candidates, and the ratios of these pairs."""
        for series, seconds in times.rounds.items():
            self.add("seconds", series, at, seconds)
        for one, other in compared:
            self.add_ratio(one, other, at, times.ratio(one, other))

    def add_ratio(self, one: str, other: str, at: At, ratio: float) -> None:
        """Add the ratio of two series at one place."""
        self.ratios.setdefault(f"{one} / {other}", []).append((at, _rounded(ratio)))

    def medians(self, unit: str, series: str) -> Mapping[At, float]:
        """Return the medians of a series by their places."""
        return {at: value for at, value, *_ in self.units[unit][series]}

    def save(self) -> None:
        """Write the figure, if a folder is named."""
        if folder := os.environ.get(FOLDER):
            file = Path(folder, f"{self.name}.json")
            file.write_text(json.dumps(self._content(), indent=1) + "\n", encoding="utf-8")

    def _content(self) -> dict[str, Any]:
        return {
            "axis": self.axis,
            "units": self.units,
            "ratios": self.ratios,
            "machine": {**this_machine(), "load": [self.load_before, load()]},
        }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
