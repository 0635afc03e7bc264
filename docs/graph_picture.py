"""Draws the graph of `lance_flights` with its table versions, for light and for dark pages.

``python docs/graph_picture.py`` writes ``docs/images/table-versions-light.svg`` and ``-dark.svg``, and so
does `./scripts/docs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 1066, 400
ROW, HEADER, CARD = 34, 36, 176
TASK, TASK_HEIGHT, JOIN = 164, 60, 684
SANS = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True, slots=True)
class Theme:
    """The colors of one variant."""

    text: str
    muted: str
    line: str
    surface: str
    task: str
    sensor: str
    accent: str
    accent_text: str
    tint: str


THEMES = {
    "light": Theme(
        *("#1f2430", "#667085", "#98a2b3", "#ffffff", "#eef4ff", "#f3f0ff", "#0d7a5f", "#ffffff", "#e6f6f0")
    ),
    "dark": Theme(
        *("#e8eaf0", "#9aa4b8", "#5d6880", "#1c212c", "#1d2a42", "#2a2444", "#37c49b", "#0c1512", "#17342c")
    ),
}


@dataclass(frozen=True, slots=True)
class Version:
    """A version in a table's card."""

    name: str
    made_by: str
    read: bool = False
    """Whether this run commits it, or reads it."""
    later: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """A table with its versions, newest last."""

    name: str
    x: int
    y: int
    versions: tuple[Version, ...]

    def middle_of(self, number: int) -> int:
        """Return the y of a version's middle."""
        return self.y + HEADER + number * ROW + ROW // 2

    @property
    def read(self) -> int:
        """The y of the middle of the version that this run commits."""
        return self.middle_of([version.read for version in self.versions].index(True))


FLIGHTS = Card(
    "flights",
    258,
    14,
    (
        Version("v10", "2013-10"),
        Version("v11", "2013-11"),
        Version("v12", "2013-12", read=True),
        Version("v13", "a later commit", later=True),
    ),
)
WEATHER = Card(
    "weather",
    258,
    236,
    (
        Version("v12", "2013-11"),
        Version("v13", "compaction"),
        Version("v14", "2013-12", read=True),
    ),
)
DELAYS = Card("delays", 886, 146, (Version("v11", "2013-11"), Version("v12", "2013-12", read=True)))


def picture(theme: Theme) -> str:
    """Return the picture as SVG."""
    join_y = DELAYS.read
    parts = [
        *(card(one, theme) for one in (FLIGHTS, WEATHER, DELAYS)),
        *(arrival(one, theme, join_y) for one in (FLIGHTS, WEATHER)),
        task(JOIN, join_y, "ingest_delays", "joins v12 and v14", theme.task, theme),
        arrow([(JOIN + TASK, join_y), (DELAYS.x, join_y)], theme.accent),
    ]
    title = "The DAG lance_flights: ingestions commit versions, sensors wait for them, the join reads both"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" font-family="{SANS}"><title>{title}</title>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def arrival(table: Card, theme: Theme, join_y: int) -> str:
    """An ingestion, the version that it commits, and the sensor that waits for it."""
    y, version = table.read, next(one.name for one in table.versions if one.read)
    sensor_x, middle = 472, 472 + TASK + 24
    bend = join_y + (-12 if y < join_y else 12)
    return "\n".join(
        [
            task(4, y, f"ingest_{table.name}", "Spark, one commit", theme.task, theme),
            arrow([(4 + TASK, y), (table.x, y)], theme.accent),
            label(4 + TASK + 44, y - 10, f"commits {version}", theme.muted),
            arrow([(table.x + CARD, y), (sensor_x, y)], theme.accent),
            task(sensor_x, y, f"wait_for_{table.name}", f"deferred until {version}", theme.sensor, theme),
            arrow([(sensor_x + TASK, y), (middle, y), (middle, bend), (JOIN, bend)], theme.accent),
            label(middle + 8, (y + join_y) // 2 + 4, version, theme.accent, anchor="start", bold=True),
        ]
    )


def card(table: Card, theme: Theme) -> str:
    """A table's versions, newest last, below its name."""
    height = HEADER + ROW * len(table.versions) + 6
    frame = rectangle(table.x, table.y, CARD, height, theme.surface, theme.line, 10)
    name = text(table.x + 14, table.y + 23, f"nyc${table.name}", theme.text, 14, bold=True, mono=True)
    rows = [row(table, number, version, theme) for number, version in enumerate(table.versions)]
    return "\n".join([frame, name, *rows])


def row(table: Card, number: int, version: Version, theme: Theme) -> str:
    """A version with what made it; the version that this run commits stands out."""
    y = table.middle_of(number)
    color = theme.text if version.read else theme.muted
    tint = rectangle(table.x + 6, y - ROW // 2 + 1, CARD - 12, ROW - 2, theme.tint, "none", 7)
    fill, edge = (theme.accent, theme.accent) if version.read else ("none", theme.line)
    pill = rectangle(table.x + 14, y - 11, 42, 22, fill, edge, 11, dashed=version.later)
    number_color = theme.accent_text if version.read else color
    name = text(
        table.x + 35, y + 4, version.name, number_color, 13, bold=version.read, mono=True, anchor="middle"
    )
    return "\n".join(
        [tint] * version.read + [pill, name, text(table.x + 66, y + 4, version.made_by, color, 13.5)]
    )


def task(x: int, y: int, name: str, note: str, fill: str, theme: Theme) -> str:
    """A task of the DAG, by the y of its middle."""
    frame = rectangle(x, y - TASK_HEIGHT // 2, TASK, TASK_HEIGHT, fill, theme.line, 8)
    middle = x + TASK // 2
    title = text(middle, y - 4, name, theme.text, 14.5, bold=True, mono=True, anchor="middle")
    return "\n".join([frame, title, text(middle, y + 16, note, theme.muted, 13.5, anchor="middle")])


def label(x: int, y: int, words: str, color: str, anchor: str = "middle", *, bold: bool = False) -> str:
    """Words at an arrow."""
    return text(x, y, words, color, 12.5, anchor=anchor, bold=bold, mono=bold)


def arrow(points: list[tuple[int, int]], color: str) -> str:
    """A line through points with rounded corners, and a head at its end."""
    (x, y), path = points[-1], [f"M{points[0][0]} {points[0][1]}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = (_toward(corner, other, 8) for other in (before, after))
        path.append(f"L{start[0]} {start[1]} Q{corner[0]} {corner[1]} {end[0]} {end[1]}")
    path.append(f"L{x - 8} {y}")
    line = f'<path d="{" ".join(path)}" fill="none" stroke="{color}" stroke-width="1.8"/>'
    return f'{line}<path d="M{x - 9} {y - 5} L{x - 1} {y} L{x - 9} {y + 5} Z" fill="{color}"/>'


def _toward(point: tuple[int, int], other: tuple[int, int], most: int) -> tuple[int, int]:
    dx, dy = other[0] - point[0], other[1] - point[1]
    length = max(abs(dx), abs(dy)) or 1
    step = min(most, length // 2)
    return point[0] + dx * step // length, point[1] + dy * step // length


def rectangle(
    x: int, y: int, width: int, height: int, fill: str, stroke: str, radius: int, *, dashed: bool = False
) -> str:
    """A rounded rectangle."""
    dashes = ' stroke-dasharray="3 3"' if dashed else ""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="1.2"{dashes}/>'
    )


def text(
    x: int,
    y: int,
    words: str,
    color: str,
    size: float,
    *,
    anchor: str = "start",
    bold: bool = False,
    mono: bool = False,
) -> str:
    """A line of text."""
    weight = ' font-weight="600"' if bold else ""
    family = f' font-family="{MONO}"' if mono else ""
    return (
        f'<text x="{x}" y="{y}" fill="{color}" font-size="{size}" text-anchor="{anchor}"{weight}{family}>'
        f"{escape(words)}</text>"
    )


def draw(folder: Path) -> None:
    """Write the picture for each theme.

    Args:
        folder: where to.
    """
    for name, theme in THEMES.items():
        (folder / f"table-versions-{name}.svg").write_text(picture(theme), encoding="utf-8")


if __name__ == "__main__":
    draw(Path(__file__).parent / "images")
