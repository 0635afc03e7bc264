"""An hour of Airflow with a commit each second: no missed wake-up, and no process that grows.

500 deferred sensors wait for versions of 50 tables, and each is replaced when it has woken up, by a new task
that polls and defers. A task start costs seconds of CPU time: two cores have time for nine wake-ups a minute,
so that a table's waits are seven versions apart. The hour begins when all of them are deferred. The 50
watchers of assets cost no task: they have to wake up for every commit, 3,600 times in the hour, in the same
triggerer and from the same polls. Every few minutes, maintenance with Spark makes further versions of two
tables, and removes old ones.

A wait was missed if it is for version v or greater, and didn't leave its state ``deferred`` within three
poll intervals after version v was committed, or after it was deferred if that was later. An asset's update
was missed if no update within three intervals after the commit of a version covers that version, or if it
leaves out versions after the previous update.

Growth is judged for each process that lives through the whole test: what it has at least of memory, open
files, threads and TCP connections in the last ten minutes, against the same in the ten minutes after the
first ten. No process that a task starts lives that long.

`LANCENS_SOAK_SECONDS` selects a shorter form, with fewer waits; below half an hour memory is only reported.
`LANCENS_SOAK_REPORT` is a file for the figures, all samples included.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.soak.form import Form
from tests.e2e.soak.run import PREPARATION_SECONDS, Soak, soaking
from tests.e2e.soak.summary import summarize

FORM = Form.chosen()

# At small size: `tests/benchmarks/test_waits.py`, `tests/integration/airflow/test_shared_poll.py`,
# `tests/e2e/running`.
pytestmark = [pytest.mark.long, pytest.mark.timeout(FORM.seconds + PREPARATION_SECONDS + 1800)]


@pytest.fixture
def soak(tmp_path: Path) -> Iterator[Soak]:
    with soaking(FORM, tmp_path) as soak:
        yield soak


def test_no_wait_is_missed_and_no_process_grows(
    soak: Soak, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = soak.prepare()
    sampler = soak.last()
    summary = summarize(soak, sampler, started)

    report = Path(os.environ.get("LANCENS_SOAK_REPORT") or tmp_path / "soak.json")
    summary.write(report, sampler)
    with capsys.disabled():
        print(f"\n{summary.text()}\n  {report}")  # noqa: T201

    assert not summary.problems, "\n".join(summary.problems)
