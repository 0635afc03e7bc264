"""The log of a run by `airflow dags test`, split into the files in which Airflow's UI looks for task logs.

That command writes the output of all tasks to one stream, one task after the other.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

_BEGIN = re.compile(r"\[DAG TEST\] starting task_id=(\S+) map_index=")
_END = re.compile(r"\[DAG TEST\] end task task_id=")
_LINE = re.compile(r"(?P<timestamp>\S+Z) \[(?P<level>\w+) *\] (?P<event>.*)")


def write_task_logs(lines: Iterable[str], folder: Path) -> None:
    """Write the log of each try of each task.

    Args:
        lines: the log of the run.
        folder: the run's folder below Airflow's folder of logs.
    """
    tries: Counter[str] = Counter()
    for task, found in _tries_in(lines):
        tries[task] += 1
        file = folder / f"task_id={task}" / f"attempt={tries[task]}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{_entry(line)}\n" for line in found), encoding="utf-8")


def _tries_in(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    task, found = "", list[str]()
    for line in lines:
        if begins := _BEGIN.search(line):
            if task:  # the one before was stopped
                yield task, found
            task, found = begins[1], []
        elif task and _END.search(line):
            yield task, found
            task = ""
        elif task:
            found.append(line.rstrip("\n"))
    if task:
        yield task, found


def _entry(line: str) -> str:
    """Return a line in the format of Airflow's task logs."""
    parts = _LINE.match(line)
    return json.dumps(parts.groupdict() if parts else {"event": line})
