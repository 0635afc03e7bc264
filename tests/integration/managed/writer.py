"""A writer in a process of its own: it commits rows until enough were acknowledged, or until it dies."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import lance_namespace

from tests.integration.managed.deaths import POINTS, be_killed
from tests.integration.managed.table import ManagedTable

ROWS_OF_A_WRITER = 100_000
TRIED, ACKNOWLEDGED = "tried", "acknowledged"
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """All that a writer needs; it pickles."""

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
    """Commit, and note what was tried and what was acknowledged, so that it survives a kill."""
    namespace = lance_namespace.connect(job.impl, dict(job.properties))
    table = ManagedTable(namespace, job.table, job.storage_options)
    row, done = (job.number + 1) * ROWS_OF_A_WRITER, 0
    with job.log.open("a") as log:
        while done < job.commits:
            row += 1  # a commit whose outcome isn't known isn't tried again, or it might be there twice
            _note(log.fileno(), f"{TRIED} {row}")
            if done == 1 and job.dies_at:
                with POINTS[job.dies_at].of_death(be_killed):
                    table.append(row)
            try:
                version = table.append(row)
            except (OSError, RuntimeError, ValueError, lance_namespace.errors.LanceNamespaceError):
                time.sleep(_PAUSE_SECONDS)  # the metastore is away, or there is a crowd
                continue
            _note(log.fileno(), f"{ACKNOWLEDGED} {row} {version}")
            done += 1


def _note(file: int, line: str) -> None:
    os.write(file, f"{line}\n".encode())
