"""`python -m quickstart`: run the DAG for the next two months of 2013, with real components."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import lance_namespace
from lance_namespace import LanceNamespace
from nycflights.months import MONTHS
from nycflights.tables import months_done
from rich.console import Console

from airflow_provider_lancens.embedded import EmbeddedMetastoreError
from quickstart import picture
from quickstart.facts import table_facts, worst_hours
from quickstart.home import Home
from quickstart.progress import Progress, say
from quickstart.runs import MonthByMonth, RunHistory, tasks_in_order

MONTHS_A_START = 2


def main() -> int:
    """Run it, or print why it can't run."""
    console = Console()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return quickstart(Home.chosen(), console)
    except KeyboardInterrupt:
        say(console, "stopped; run the command again to continue")
        return 130
    except EmbeddedMetastoreError as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        return 1


def quickstart(home: Home, console: Console) -> int:
    """Start the metastore and Airflow, run the next months, and show the result; return 1 if a run failed."""
    say(console, f"starting a real Hive Metastore in {home.folder / 'metastore'}")
    with home.metastore() as metastore:
        say(console, f"it is ready at {metastore.uri}; migrating Airflow's database in {home.airflow}")
        os.environ.update(home.environment(metastore))  # before Airflow is imported here
        home.migrate()
        namespace = lance_namespace.connect(
            "airflow_provider_lancens.namespace.Hive2Namespace", {"uri": metastore.uri}
        )
        return run_and_show(home, namespace, console)


def run_and_show(home: Home, namespace: LanceNamespace, console: Console) -> int:
    """Run the next months, then show the tables."""
    missing = [month for month in MONTHS if month not in months_done(namespace)]
    months, later = missing[:MONTHS_A_START], missing[MONTHS_A_START:]
    history = RunHistory()
    if not months:
        say(console, "all months of 2013 are ingested: nothing to run")
    elif not run_months(home, months, history, console):
        return 1
    tables = table_facts(namespace)
    picture.show_tables(console, tables)
    picture.show_months(console, {month: history.results(month) for month in months})
    picture.show_worst_hours(console, worst_hours(namespace))
    picture.show_places(console, home, tables)
    picture.show_next(console, later)
    return 0


def run_months(home: Home, months: Sequence[str], history: RunHistory, console: Console) -> bool:
    """Run one month after the other with live progress; return whether all succeeded."""
    say(console, f"running the DAG for {' and '.join(months)}")
    progress = Progress(console, tasks_in_order(), months)
    with MonthByMonth(home, months) as runs:
        progress.follow(lambda: {month: history.task_states(month) for month in months}, runs.go_on)
        if runs.failed:
            console.print(f"A run failed; see {runs.log}.", style="red", soft_wrap=True)
        return not runs.failed


if __name__ == "__main__":
    sys.exit(main())
