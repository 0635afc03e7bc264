"""`python -m quickstart`: run the DAG for the next two months of 2013, with real components."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial

import lance_namespace
from lance_namespace import LanceNamespace
from nycflights.months import MONTHS
from nycflights.tables import TABLES, months_done, newest, worst_hours
from rich.console import Console

from airflow_provider_lancens.embedded import EmbeddedMetastoreError
from quickstart import picture
from quickstart.children import Children
from quickstart.facts import table_facts
from quickstart.home import DAG_ID, Home
from quickstart.progress import Progress, say
from quickstart.runs import MonthByMonth, RunHistory, log_of, tasks_in_order
from quickstart.stopping import Stopped, stopping_on_signals
from quickstart.task_logs import write_task_logs

MONTHS_A_START = 2


def main() -> int:
    """Run it, or print why it can't run."""
    console, children = Console(), Children()
    try:
        with stopping_on_signals(children, partial(say, console)):
            return quickstart(Home.chosen(), console, children)
    except Stopped as stopped:
        say(console, "stopped; run the command again to continue")
        return stopped.exit_code
    except EmbeddedMetastoreError as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        return 1


def quickstart(home: Home, console: Console, children: Children) -> int:
    """Start the metastore and Airflow, run the next months, and show the result; return 1 if a run failed."""
    say(console, f"starting a real Hive Metastore in {home.folder / 'metastore'}")
    with home.metastore() as metastore:
        say(console, f"it is ready at {metastore.uri}; migrating Airflow's database in {home.airflow}")
        os.environ.update(home.environment)  # before Airflow is imported here
        home.migrate()
        home.save_connections(metastore)
        namespace = lance_namespace.connect(
            "airflow_provider_lancens.namespace.Hive2Namespace", {"uri": metastore.uri}
        )
        return run_and_show(home, namespace, console, children)


def run_and_show(home: Home, namespace: LanceNamespace, console: Console, children: Children) -> int:
    """Run the next months, then show the tables."""
    missing = [month for month in MONTHS if month not in months_done(namespace)]
    months, later = missing[:MONTHS_A_START], missing[MONTHS_A_START:]
    history = RunHistory()
    if not months:
        say(console, "all months of 2013 are ingested: nothing to run")
    elif not run_months(home, months, history, console, children):
        return 1
    tables = table_facts(namespace)
    picture.show_tables(console, tables)
    picture.show_months(console, {month: history.results(month) for month in months})
    if delays := newest(namespace, TABLES["delays"]):
        picture.show_worst_hours(console, worst_hours(delays))
    picture.show_places(console, home, tables)
    picture.show_next(console, later)
    return 0


def run_months(
    home: Home, months: Sequence[str], history: RunHistory, console: Console, children: Children
) -> bool:
    """Run one month after the other with live progress; return whether all succeeded."""
    say(console, f"running the DAG for {' and '.join(months)}")
    progress = Progress(console, tasks_in_order(), months)
    runs = MonthByMonth(home, months, children)
    try:
        progress.follow(lambda: {month: history.task_states(month) for month in months}, runs.go_on)
    finally:
        children.stop()
        history.fail_unfinished(months)
        keep_task_logs(home, months, history)
    if runs.failed:
        console.print(f"A run failed; see {runs.log}.", style="red", soft_wrap=True)
    return not runs.failed


def keep_task_logs(home: Home, months: Sequence[str], history: RunHistory) -> None:
    """Write the logs of the months' tasks where Airflow's UI finds them."""
    for month in months:
        if run_id := history.run_id(month):
            with log_of(home, month).open(encoding="utf-8", errors="replace") as lines:
                write_task_logs(lines, home.airflow / "logs" / f"dag_id={DAG_ID}" / f"run_id={run_id}")


if __name__ == "__main__":
    sys.exit(main())
