"""A writer process: it commits rows until enough were acknowledged, or until it is killed."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import lance_namespace

from tests.integration.managed.commit_points import POINTS, kill_process
from tests.integration.managed.managed_table import ManagedTable

ROWS_OF_A_WRITER = 100_000
TRIED, ACKNOWLEDGED = "tried", "acknowledged"
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """Arguments of a writer; picklable."""

    impl: str
    properties: Mapping[str, str]
    table: tuple[str, str]
    storage_options: Mapping[str, str]
    number: int
    commits: int
    log: Path
    dies_at: str | None = None
    """The point of its second commit at which it kills itself."""


def work(job: Job) -> None:
    """Commit rows, and record attempted and acknowledged ones in files that survive a kill."""
    namespace = lance_namespace.connect(job.impl, dict(job.properties))
    table = ManagedTable(namespace, job.table, job.storage_options)
    row, done = (job.number + 1) * ROWS_OF_A_WRITER, 0
    with job.log.open("a") as log:
        while done < job.commits:
            row += 1  # a commit with an unknown result isn't repeated, since it might exist twice
            _note(log.fileno(), f"{TRIED} {row}")
            if done == 1 and job.dies_at:
                with POINTS[job.dies_at].ended_by(kill_process):
                    table.append(row)
            try:
                version = table.append(row)
            except (OSError, RuntimeError, ValueError, lance_namespace.errors.LanceNamespaceError):
                time.sleep(_PAUSE_SECONDS)  # the metastore is unreachable or busy
                continue
            _note(log.fileno(), f"{ACKNOWLEDGED} {row} {version}")
            done += 1


def _note(file: int, line: str) -> None:
    os.write(file, f"{line}\n".encode())
