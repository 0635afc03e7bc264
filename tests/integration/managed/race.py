"""Concurrent writers of one table, and checks of the result."""

import logging
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Self

from tests.integration.managed.managed_table import ManagedTable
from tests.integration.managed.race_writer import ACKNOWLEDGED, TRIED, Job, work
from tests.support.lakes import Lake

log = logging.getLogger(__name__)

FIRST, LAST = 1, 2
"""The rows before and after the race."""
_SPAWN = multiprocessing.get_context("spawn")  # neither Lance nor obstore survives a fork


@dataclass
class Race:
    """Writers of one table; a context manager that ends them."""

    lake: Lake
    table: ManagedTable
    folder: Path
    commits: int
    deadline: float = 240
    """Seconds."""
    writers: list[SpawnProcess] = field(default_factory=list, init=False)
    _started: float = field(default_factory=time.monotonic, init=False)

    def __enter__(self) -> Self:
        self.folder.mkdir()
        # Each append without a dataset would create one, and with pylance the last one wins, even by path.
        self.table.append(FIRST)
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self.writers:
            writer.kill()
            writer.join()

    def start(self, deaths: Iterable[str | None]) -> None:
        """Start a writer for each point of a commit at which it is killed, or None."""
        for dies_at in deaths:
            number = len(self.writers)
            job = Job(
                self.lake.impl,
                self.lake.properties,
                self.table.id,
                self.lake.storage_options,
                number,
                self.commits,
                self._log(number),
                dies_at,
            )
            writer = _SPAWN.Process(target=work, args=(job,), daemon=True)
            writer.start()
            self.writers.append(writer)

    def wait_for(self, acknowledged: int) -> None:
        """Return once this many commits were acknowledged in total."""
        until = time.monotonic() + self.deadline
        while len(self.noted(ACKNOWLEDGED)) < acknowledged:
            assert time.monotonic() < until, f"only {len(self.noted(ACKNOWLEDGED))} commits came through"
            assert any(writer.is_alive() for writer in self.writers)
            time.sleep(0.05)

    def finish(self) -> Sequence[int]:
        """Wait until all writers have ended, and return their exit codes."""
        until = time.monotonic() + self.deadline
        for writer in self.writers:
            writer.join(max(0, until - time.monotonic()))
        assert not any(writer.is_alive() for writer in self.writers), "a writer is stuck"
        return [writer.exitcode or 0 for writer in self.writers]

    def noted(self, what: str) -> Sequence[int]:
        """The rows that all writers attempted or had acknowledged."""
        return [int(fields[1]) for fields in self._lines() if fields[0] == what and len(fields) > 1]

    def check(self) -> None:
        """Check that no commit is lost or duplicated, all readers agree, and the next commit succeeds."""
        rows = Counter(self.table.rows())
        acknowledged, tried = set(self.noted(ACKNOWLEDGED)), set(self.noted(TRIED))
        assert acknowledged - set(rows) == set(), "acknowledged, and lost"
        assert [row for row, times in rows.items() if times > 1] == [], "doubled"
        assert set(rows) - tried == {FIRST}
        assert self.table.version == self.table.open().version == len(rows)
        assert self.table.rows_by_path() == sorted(rows)
        assert self.table.namespace.compare_table(self.table.parts).verdict == "consistent"
        assert self.table.append(LAST) == len(rows) + 1
        self._check_versions()
        seconds = time.monotonic() - self._started
        log.info("%d acknowledged, version %d, %.0f seconds", len(acknowledged), len(rows), seconds)

    def _check_versions(self) -> None:
        version_of_row: Mapping[int, int] = dict(self._acknowledgments())
        assert len(set(version_of_row.values())) == len(version_of_row), "one version for two commits"

    def _acknowledgments(self) -> Iterable[tuple[int, int]]:
        for what, *numbers in self._lines():
            if what == ACKNOWLEDGED:
                yield int(numbers[0]), int(numbers[1])

    def _lines(self) -> Iterator[list[str]]:
        """The fields of each line that the writers logged; one that was killed early may have no log."""
        logs = (self._log(number) for number in range(len(self.writers)))
        return (line.split() for log in logs if log.exists() for line in log.read_text().splitlines())

    def _log(self, number: int) -> Path:
        return self.folder / f"writer-{number}.log"
