"""Progress display: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.live import Live
from rich.table import Table

from quickstart.home import DAG_ID
from quickstart.runs import FINISHED, TaskState

if TYPE_CHECKING:
    from rich.console import Console

BEGAN = float(os.environ.get("LANCENS_BEGAN") or time.time())

MARKS = {
    "success": "[green]✓[/]",
    "failed": "[red]✗[/]",
    "upstream_failed": "[red]✗[/]",
    "skipped": "[dim]-[/]",
    "running": "[yellow]▶[/]",
    "up_for_retry": "[yellow]↻[/]",
    "deferred": "[blue]…[/]",
}

States = Mapping[str, Mapping[str, TaskState]]
"""The tasks' states by month and task."""


def say(console: Console, text: str) -> None:
    """One line, with the seconds since the command was given."""
    console.print(f"[dim]\\[{time.time() - BEGAN:4.0f}s][/] {text}", highlight=False, soft_wrap=True)


class Progress:
    """Shows states as they change.

    Args:
        console: where to.
        tasks: the rows, in the order of the DAG.
        months: the columns.
    """

    def __init__(self, console: Console, tasks: Sequence[str], months: Sequence[str]) -> None:
        self._console = console
        self._tasks = tasks
        self._months = months
        self._reported: dict[tuple[str, str], str] = {}

    def follow(self, look: Callable[[], States], goes_on: Callable[[], bool], seconds: float = 0.5) -> States:
        """Show what `look` sees until nothing goes on, and return the last of it."""
        if not self._console.is_terminal:
            last = self._follow(look, goes_on, seconds, self._print_changes)
            self._console.print(self._table(last))
            return last
        with Live(console=self._console, refresh_per_second=8, transient=False) as live:
            return self._follow(look, goes_on, seconds, lambda states: live.update(self._table(states)))

    def _follow(
        self,
        look: Callable[[], States],
        goes_on: Callable[[], bool],
        seconds: float,
        show: Callable[[States], None],
    ) -> States:
        while True:
            going_on = goes_on()
            states = look()
            show(states)
            if not going_on:
                return states
            time.sleep(seconds)

    def _print_changes(self, states: States) -> None:
        for month, tasks in states.items():
            for name in self._tasks:
                state = tasks[name].state if name in tasks else "waiting"
                if state not in ("waiting", "scheduled", "queued", self._reported.get((month, name))):
                    self._reported[month, name] = state
                    say(self._console, f"{month} {name}: {state}{_outcome(tasks[name])}")

    def _table(self, states: States) -> Table:
        table = Table(
            title=f"{DAG_ID}, {time.time() - BEGAN:.0f} s after the command",
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
        )
        table.add_column("task")
        for month in self._months:
            table.add_column(month, justify="right", min_width=10)
        for name in self._tasks:
            table.add_row(name, *(_cell(states.get(month, {}).get(name)) for month in self._months))
        return table


def _outcome(task: TaskState) -> str:
    if task.state not in FINISHED:
        return ""
    return f" in {task.seconds or 0:.1f} s" + ("" if task.rows is None else f", {task.rows:,} rows")


def _cell(task: TaskState | None) -> str:
    if task is None or task.seconds is None:
        return ""
    again = f" (try {task.tries})" if task.tries > 1 else ""
    rows = "" if task.rows is None else f"{task.rows:,} rows, "
    return f"{rows}{task.seconds:.1f} s{again} {MARKS.get(task.state, task.state)}"
