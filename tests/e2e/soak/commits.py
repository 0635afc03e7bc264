"""The committer's process, and when each table reached which version."""

import json
import subprocess
import sys
import threading
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path
from typing import Self

from tests.e2e.soak.form import Form


class Commits:
    """The record of all commits, by table, in order."""

    def __init__(self) -> None:
        self._versions: dict[str, list[int]] = defaultdict(list)
        self._times: dict[str, list[float]] = defaultdict(list)

    def add(self, table: str, version: int, at: float) -> None:
        self._times[table].append(at)
        self._versions[table].append(version)

    @property
    def count(self) -> int:
        return sum(map(len, list(self._versions.values())))

    def of(self, table: str) -> list[tuple[int, float]]:
        """A table's versions, with the time of each."""
        return list(zip(self._versions[table], self._times[table], strict=False))

    def newest(self, table: str) -> int:
        """A table's last version; 0 if it has none."""
        return self._versions[table][-1] if self._versions[table] else 0

    def reached(self, table: str, version: int) -> float | None:
        """When a table had this version at the latest; None if it hasn't yet.

        Versions that maintenance makes aren't known: a table may have had it some time before.
        """
        place = bisect_left(self._versions[table], version)
        return self._times[table][place] if place < len(self._times[table]) else None


class Committer:
    """The process that commits; a context manager that ends it."""

    def __init__(self, form: Form, uri: str, root: Path, errors: Path) -> None:
        self.commits = Commits()
        self._errors = errors
        command = [sys.executable, "-m", "tests.e2e.soak.committer", uri, str(root), *form.tables]
        with errors.open("w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read_on, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """See that it still runs."""
        assert self._process.poll() is None, f"the committer ended:\n{self._errors.read_text()[-5000:]}"

    def go_on(self) -> None:
        """Have it commit each second, after the first version of each table."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.close()

    def end(self) -> None:
        """Have it finish the commit in progress; all are in the record afterwards."""
        self._process.terminate()
        self._process.wait(60)
        self._reader.join()

    def _read_on(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.commits.add(**json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
