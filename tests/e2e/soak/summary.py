"""The results of a soak: as text, as JSON, and its problems."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.e2e.soak.form import COMMITS_A_MINUTE, Form
from tests.e2e.soak.growth import Growth, growths
from tests.e2e.soak.processes import Sampler
from tests.e2e.soak.run import Soak
from tests.e2e.soak.wake_ups import Delays, Update, delays_of_updates, delays_of_waits, gaps

LEAST_SHARE = 0.9
"""Of the commits and of the waits: that there are fewer means that the test was not what it should be."""


@dataclass(frozen=True)
class Summary:
    """The figures of a soak."""

    seconds: float
    load: float
    """Of the machine in the last 15 minutes: above the number of its cores, everything takes longer."""
    commits: int
    armed: int
    """Waits that were deferred."""
    deferred: float
    """At a time, in the median."""
    waits: Delays
    updates: Delays
    maintained: int
    """Tasks that maintained a table."""
    growths: list[Growth]
    problems: list[str]

    def text(self) -> str:
        """A few lines for a person."""
        return "\n".join(
            [
                f"soak of {self.seconds:.0f} s: {self.commits} commits, {self.maintained} maintained tables",
                f"  load of the machine: {self.load:.1f}",
                f"  waits: {self.armed} armed, {self.deferred:.0f} deferred at a time",
                f"  wake-ups: {_spread(self.waits)}",
                f"  updates of assets: {_spread(self.updates)}",
                *self._of_processes(),
                *(f"  PROBLEM: {problem}" for problem in self.problems),
            ]
        )

    def _of_processes(self) -> Iterator[str]:
        for process, of_process in groupby(self.growths, key=lambda growth: growth.process):
            yield f"  {process}: {', '.join(growth.text() for growth in of_process)}"

    def write(self, file: Path, sampler: Sampler) -> None:
        """Write all of it as JSON, samples included."""
        processes = [
            {
                "component": component,
                "pid": pid,
                "title": sampler.titles[component, pid, began],
                "samples": [list(asdict(sample).values()) for sample in samples],
            }
            for (component, pid, began), samples in sampler.samples.items()
        ]
        figures: dict[str, Any] = {**asdict(self), "processes": processes}
        file.write_text(json.dumps(figures))


def summarize(soak: Soak, sampler: Sampler, started: float) -> Summary:
    """Judge what was observed.

    Args:
        soak: after its last observation; its servers still run.
        sampler: with all samples.
        started: when the commits began. Updates by the first ones aren't judged: the triggerer imports Lance
            for them.
    """
    form, commits, now = soak.form, soak.committer.commits, time.time()
    waits = delays_of_waits(soak.waits.all, commits, soak.waits.observed_at, form.patience)
    by_table = soak.updates()
    updates, judged_from = Delays(), started + form.patience
    for table, of_table in by_table.items():
        updates += delays_of_updates(of_table, commits, table, judged_from, now, form.patience)
    compared = list(_growths(form, sampler))
    deferred = median(soak.waits.deferred_over_time)
    return Summary(
        seconds=form.seconds,
        load=os.getloadavg()[2],
        commits=commits.count,
        armed=sum(wait.deferrals for wait in soak.waits.all),
        deferred=deferred,
        waits=waits,
        updates=updates,
        maintained=sum(state == "success" for _, state, _ in soak.maintenance()),
        growths=compared,
        problems=[
            *(f"missed wake-up: {missed}" for missed in (*waits.missed, *updates.missed)),
            *_gaps(by_table),
            *_unlike_a_soak(soak, deferred),
            *_failures(soak),
            *_excessive(form, compared),
            *(f"still running: {process}" for process in sampler.outlived(form.window)),
        ],
    )


def _growths(form: Form, sampler: Sampler) -> Iterator[Growth]:
    for name, samples in sorted(sampler.lasting(form.window).items()):
        yield from growths(name, samples, form.window, form.window)


def _excessive(form: Form, compared: Sequence[Growth]) -> Iterator[str]:
    for growth in compared:
        if growth.is_excessive and (form.is_long or growth.metric != "memory"):
            yield f"growth: {growth}"


def _gaps(by_table: Mapping[str, Sequence[Update]]) -> Iterator[str]:
    for updates in by_table.values():
        yield from (f"versions left out: {gap}" for gap in gaps(updates))


def _unlike_a_soak(soak: Soak, deferred: float) -> Iterator[str]:
    count, expected = soak.committer.commits.count, soak.form.seconds * COMMITS_A_MINUTE / 60
    if count < LEAST_SHARE * expected:
        yield f"only {count} commits in {soak.form.seconds:.0f} s: the machine is too slow or too busy"
    waits = soak.form.waits
    if soak.form.is_long and deferred < LEAST_SHARE * waits:
        yield f"only {deferred:.0f} of {waits} waits at a time: the machine is too slow or too busy"
    if not soak.maintenance():
        yield "no table was maintained"


def _failures(soak: Soak) -> Iterator[str]:
    yield from (f"failed task: {' '.join(map(str, task))}" for task in soak.failed_tasks())
    for wait in soak.waits.all:
        if wait.deferrals > 1:
            yield f"{wait.name} for {wait.awaited} woke up {wait.deferrals} times"
    commits, rows = soak.committer.commits, soak.rows()
    for table, found in rows.items():
        if found != len(commits.of(table)):
            yield f"{table} has {found} rows after {len(commits.of(table))} commits of one"


def _spread(delays: Delays) -> str:
    taken = delays.seconds
    if len(taken) < 2:
        return f"{len(taken)}"
    most = quantiles(taken, n=100, method="inclusive")[98]
    return (
        f"{len(taken)}, after {median(taken):.1f} s in the median, {most:.1f} s in 99 %, "
        f"{max(taken):.1f} s at most; {len(delays.missed)} missed"
    )
