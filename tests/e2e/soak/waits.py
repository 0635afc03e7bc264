"""The deferred tasks: armed, observed in Airflow's database, and replaced when they have woken up."""

import time
from dataclasses import dataclass, field
from itertools import count

from tests.e2e.soak.commits import Commits
from tests.e2e.soak.database import AirflowOnPostgresql
from tests.e2e.soak.form import Form
from tests.e2e.soak.wake_ups import Wait

DAG = "soak_waits"
_STATES = "select run_id, task_id, state from task_instance where dag_id = %s and run_id in ({})"


@dataclass
class Group:
    """The runs of ten tables' waits that haven't all woken up, by run id."""

    tables: list[str]
    runs: dict[str, dict[str, Wait]] = field(default_factory=dict)


class Waits:
    """As many waits as the form has; each group has a run of ten for each version that is waited for."""

    def __init__(self, form: Form, airflow: AirflowOnPostgresql, commits: Commits) -> None:
        self._form, self._airflow, self._commits = form, airflow, commits
        self._groups = [Group(tables) for tables in form.groups]
        self._dates = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second)) for second in count(1))
        self.all: list[Wait] = []
        self.observed_at = 0.0
        self.deferred_over_time: list[int] = []
        """How many waited in the triggerer at each observation."""

    def arm(self) -> None:
        """Start the first runs: the waits of a table are for versions at equal distances."""
        for ahead in range(1, self._form.waits_of_table + 1):
            for group in self._groups:
                self._start(group, ahead)

    def observe(self) -> None:
        """Note which waits were armed or woken up since the last time, and replace runs that are over."""
        by_run = {run: waits for group in self._groups for run, waits in group.runs.items()}
        now = self.observed_at = time.time()
        query = _STATES.format(", ".join(["%s"] * len(by_run)))
        for run, task, state in self._airflow.rows(query, DAG, *by_run):
            by_run[run][task].note(state, now)
        self.deferred_over_time.append(sum(wait.state == "deferred" for wait in self.all))
        for group in self._groups:
            for run in [run for run, waits in group.runs.items() if all(map(_is_over, waits.values()))]:
                del group.runs[run]
                self._start(group, self._form.waits_of_table)

    def _start(self, group: Group, ahead: int) -> None:
        more = ahead * self._form.versions_between
        versions = [self._commits.newest(table) + more for table in group.tables]
        run = self._airflow.trigger_run(DAG, next(self._dates), tables=group.tables, versions=versions)
        waits = {
            f"wait_{number}": Wait(run, table, {table: version})
            for number, (table, version) in enumerate(zip(group.tables, versions, strict=True))
        }
        last = waits[f"wait_{len(waits) - 1}"]
        last.awaited[group.tables[0]] = versions[-1]  # it waits for any of these two
        group.runs[run] = waits
        self.all += waits.values()


def _is_over(wait: Wait) -> bool:
    return wait.state in ("success", "failed")
