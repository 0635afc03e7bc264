"""The summary at the end: the tables, how they were written, and what to do with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nycflights.tables import FEWEST_DEPARTURES, TABLES
from rich import box
from rich.table import Table

from quickstart.facts import TableFacts

if TYPE_CHECKING:
    from rich.console import Console

    from quickstart.home import Home

Results = Mapping[str, Mapping[str, Any]]
"""What the tasks returned, by month and task."""


def show_tables(console: Console, facts: Sequence[TableFacts]) -> None:
    """Name, version, rows and size of each table."""
    table = _table("Tables in the metastore", "table", "version", "rows", "fragments", "size")
    for fact in facts:
        size = f"{fact.bytes / 1e6:.1f} MB"
        table.add_row(fact.name, str(fact.version), f"{fact.rows:,}", str(fact.fragments), size)
    console.print(table)


def show_months(console: Console, results: Results) -> None:
    """Which version each month's ingestions made, and which ones the join read."""
    title = "What the runs committed: rows → version"
    table = _table(title, "month", "flights", "weather", "delays", "joined at versions")
    for month, tasks in results.items():
        ingested = [tasks[f"ingest_{name}"] for name in ("flights", "weather", "delays")]
        made = (f"{result['inserted']:,} → {result['version']}" for result in ingested)
        read = (f"{tasks[f'wait_for_{name}']['version']} of {name}" for name in ("flights", "weather"))
        table.add_row(month, *made, ", ".join(read))
    console.print(table)


def show_worst_hours(console: Console, hours: Sequence[Mapping[str, Any]]) -> None:
    """The worst hours for delays, with their weather."""
    title = f"The worst hours so far with at least {FEWEST_DEPARTURES} departures, in New York time"
    table = _table(title, "hour", "from", "departed", "delay", "temp", "wind", "sight", "rain")
    for hour in hours:
        table.add_row(
            f"{hour['time_hour']:%b %d %Hh}",
            hour["origin"],
            f"{hour['flights'] - hour['cancelled']} of {hour['flights']}",
            f"{hour['mean_dep_delay']:.0f} min",
            _measured(hour["temp"], "°F"),
            _measured(hour["wind_speed"], "mph"),
            _measured(hour["visib"], "mi", digits=1),
            _measured(hour["precip"], "in", digits=2),
        )
    console.print(table)


def show_places(console: Console, home: Home, facts: Sequence[TableFacts]) -> None:
    """Show where everything is, and how to open it."""
    delays = next(fact for fact in facts if fact.name == TABLES["delays"])
    console.print("\n[bold]Where the data is[/]")
    for name, place in {
        **{fact.name: fact.location for fact in facts},
        "metastore": home.folder / "metastore",
        "raw files": home.landing,
        "Airflow": home.airflow,
        "logs": home.logs,
    }.items():
        console.print(f"  {name:12} {place}", soft_wrap=True, highlight=False)
    console.print("\n[bold]Open it[/] in a Python with pylance and pandas, such as .venv/bin/python:")
    for line in python_lines(delays):
        console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)


def python_lines(fact: TableFacts) -> tuple[str, str]:
    """The two lines that open a table at the version it has now."""
    return (
        "import lance",
        f"lance.dataset({str(fact.location)!r}, version={fact.version}).to_table().to_pandas()",
    )


def show_next(console: Console, later: Sequence[str]) -> None:
    """What to do after this, where these months are still to come."""
    again = (
        f"continues with {' and '.join(later[:2])}"
        if later
        else "shows this again: all months of 2013 are ingested"
    )
    console.print("\n[bold]What next[/]")
    console.print(f"  ./scripts/quickstart     {again}", highlight=False)
    console.print(
        "  ./scripts/airflow        the same DAG in the Airflow UI, triggered by hand", highlight=False
    )
    console.print("  example_dags/flights.py  the DAG, as a starting point for your own", highlight=False)


def _measured(value: float | None, unit: str, digits: int = 0) -> str:
    return "" if value is None else f"{value:.{digits}f} {unit}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left")
    return table
