"""Draws the figures that benchmarks have measured, for docs/performance.md: `./scripts/benchmarks plots`.

Each JSON file in docs/performance becomes a plot, and a part of the page with that plot, the machine and the
ratios. The plots have no background, and gray text, so that both themes can show them.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from tests.benchmarks.series import is_peer, label_of
from tests.benchmarks.tables import Comparison, comparisons, digest_of, part_of, short_ratio, summary

FOLDER = Path(__file__).parents[2] / "docs" / "performance"
GRAY = "#7a7a7a"
COLORS = ("#2f86c8", "#d9772f", "#3a9d5d", "#a862c4", "#c9525a", "#8c8a2b")
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "lancens",  # the same figures make the same file
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.facecolor": "none",
    "axes.edgecolor": GRAY,
    "axes.labelcolor": GRAY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": GRAY,
    "xtick.color": GRAY,
    "ytick.color": GRAY,
    "axes.prop_cycle": mpl.cycler(color=COLORS),
}
MAGNITUDES = {1_000_000: "M", 1000: "k"}


def digest(file: Path) -> str:
    """Return what a plot names to say which figures it shows."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def draw(file: Path) -> None:
    """Draw one plot beside its figures: a panel for each unit."""
    figure = json.loads(file.read_text(encoding="utf-8"))
    units = figure["units"]
    with mpl.rc_context(STYLE):
        drawn, panels = pyplot.subplots(
            1, len(units), figsize=(4.6 * len(units) + 1.4, 3.8), squeeze=False, layout="constrained"
        )
        for axes, (unit, series) in zip(panels[0], units.items(), strict=True):
            if _is_numeric(series):
                _draw_lines(axes, series)
            else:
                _draw_bars(axes, series)
            axes.set_xlabel(figure["axis"])
            axes.set_title(unit, fontsize=11)
        handles, labels = panels[0][0].get_legend_handles_labels()
        drawn.legend(
            handles, labels, loc="outside lower center", ncols=len(units) + 1, frameon=False, fontsize=9
        )
        _save(drawn, file.with_suffix(".svg"), digest(file))


def draw_summary(compared: Sequence[Comparison], file: Path) -> None:
    """Draw one bar for each ratio to another implementation: to the left where this package is faster."""
    rows = sorted((one for one in compared if one.with_peer), key=lambda one: one.ratio, reverse=True)
    with mpl.rc_context(STYLE):
        drawn, axes = pyplot.subplots(figsize=(9.6, 0.34 * len(rows) + 1.2), layout="constrained")
        for number, one in enumerate(rows):
            color = COLORS[0] if one.ratio <= 1 else COLORS[1]
            axes.barh(number, one.ratio - 1, left=1, height=0.7, color=color)
            axes.annotate(
                short_ratio(one.ratio),
                (one.ratio, number),
                xytext=(-4 if one.ratio <= 1 else 4, 0),
                textcoords="offset points",
                ha="right" if one.ratio <= 1 else "left",
                va="center",
                fontsize=8,
            )
        axes.set_xscale("log")
        axes.set_xlim(min(one.ratio for one in rows) / 3, max(2 * max(one.ratio for one in rows), 4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_yticks(range(len(rows)), [f"{one.label}, {one.place}" for one in rows], fontsize=8)
        axes.axvline(1, color=GRAY, linewidth=0.8)
        axes.set_title("◀ this package takes less    |    it takes more ▶", fontsize=10)
        _save(drawn, file, digest_of(compared))


def _save(drawn: Figure, file: Path, identifier: str) -> None:
    metadata = {"Identifier": identifier, "Date": None, "Creator": None}
    drawn.savefig(file, transparent=True, metadata=metadata)
    pyplot.close(drawn)


def _is_numeric(series: Mapping[str, Sequence[Any]]) -> bool:
    """Whether lines show more than bars: numbers, and more than one of them."""
    places = [point[0] for points in series.values() for point in points]
    return not any(isinstance(place, str) for place in places) and len(set(places)) > 1


def _draw_lines(axes: Axes, series: Mapping[str, Sequence[Any]]) -> None:
    for name, points in series.items():
        at, middle, low, high = zip(*points, strict=True)
        style, marker = ("--", "s") if is_peer(name) else ("-", "o")
        axes.plot(at, middle, style, marker=marker, markersize=4, label=label_of(name))
        axes.fill_between(at, low, high, alpha=0.15, linewidth=0)
    places = sorted({point[0] for points in series.values() for point in points})
    values = [value for points in series.values() for point in points for value in point[1:]]
    axes.set_xscale(scale_of(places))
    axes.set_yscale(scale_of(values))
    if scale_of(values) == "linear":
        axes.set_ylim(bottom=0)
    axes.set_xticks(places)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.25, color=GRAY, linewidth=0.5)


def _draw_bars(axes: Axes, series: Mapping[str, Sequence[Any]]) -> None:
    width = 0.8 / len(series)
    for number, (name, points) in enumerate(series.items()):
        at = [place + number * width - 0.4 + width / 2 for place in range(len(points))]
        fill = "none" if is_peer(name) else COLORS[number % len(COLORS)]
        color = COLORS[number % len(COLORS)]
        axes.bar(
            at,
            [point[1] for point in points],
            width * 0.85,
            label=label_of(name),
            color=fill,
            edgecolor=color,
        )
    places = next(iter(series.values()))
    axes.set_xticks(range(len(places)), [p[0] if isinstance(p[0], str) else f"{p[0]:,}" for p in places])


def scale_of(values: Sequence[float]) -> str:
    """Return the scale on which the slopes of these values can be seen."""
    return "log" if min(values) > 0 and max(values) > 10 * min(values) else "linear"


def short(value: float) -> str:
    """Write a number as on an axis."""
    for magnitude, letter in MAGNITUDES.items():
        if value >= magnitude:
            return f"{value / magnitude:g}{letter}"
    return f"{value:g}"


def main() -> None:
    """Draw all plots, and write the parts of the page."""
    figures = {
        file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))
    }
    for name, figure in figures.items():
        draw(FOLDER / f"{name}.json")
        (FOLDER / f"{name}.md").write_text(part_of(name, figure), encoding="utf-8")
    (FOLDER / "ratios.md").write_text(summary(figures), encoding="utf-8")
    draw_summary(comparisons(figures), FOLDER / "summary.svg")


if __name__ == "__main__":
    main()
