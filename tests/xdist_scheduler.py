"""Distribution of tests over processes: those that share a costly server are one work unit.

A metastore serves all processes (`tests/servers/shared.py`). A Spark session serves the process that started
it, and so do an Airflow home and its servers. The longest units are run first, so that none delays the end.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_SPARK = "tests/integration/spark"
_LONG = ("faults", "streaming", "compute", "write", "maintenance", "blobs", "changes", "publish")
WORK_UNITS: Mapping[str, str] = {
    # These do Spark's work in their own process.
    f"{_SPARK}/faults/test_presumed_dead_drivers.py": "file",
    f"{_SPARK}/faults/test_frozen_drivers.py": "file",
    f"{_SPARK}/faults/test_lost_metastore.py": "file",
    f"{_SPARK}/faults/test_missing_files.py": "file",
    # Each long enough to pay for a Spark session of its own.
    **{f"{_SPARK}/{name}/": "folder" for name in _LONG},
    # One Spark session, one Spark Connect server, one standalone cluster.
    f"{_SPARK}/": "folder",
    # Tests with their own embedded metastore.
    "tests/integration/embedded/": "folder",
    # Tests with a running Airflow.
    "tests/e2e/flights/": "folder",
    "tests/e2e/running/": "folder",
    "tests/e2e/soak/": "file",
    "tests/e2e/test_tutorial.py": "file",
    # Tests that share a process for their DAGs.
    "tests/e2e/": "folder",
}
"""By the beginning of a path, the first that fits: what is one piece. Elsewhere each file is."""

FIRST = (
    # A drop compares the locations of all tables of the server, of which there are few at the beginning.
    "tests/conformance/",
    "tests/integration/hive/test_lost_replies.py",
    "tests/e2e/running/",
    "tests/e2e/",
    f"{_SPARK}/",
    "tests/wheel/",
    "tests/integration/",
)
"""Pieces that take long, the longest first, but for quick ones; the others follow as they were collected."""


def work_unit_of(file: str) -> str:
    """The work unit of a test file."""
    for beginning, kind in WORK_UNITS.items():
        if file.startswith(beginning):
            return beginning if kind == "folder" else file
    return file


def longest_first(items: list[pytest.Item]) -> None:
    """Sort a process's tests in the order of distribution."""
    items.sort(key=lambda item: _rank(work_unit_of(_file(item.nodeid))))


def _rank(piece: str) -> int:
    return next((rank for rank, beginning in enumerate(FIRST) if piece.startswith(beginning)), len(FIRST))


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


class ByServer(LoadScopeScheduling):
    """Distributes tests that need one server as one unit."""

    def _split_scope(self, nodeid: str) -> str:
        return work_unit_of(_file(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByServer:
    """A hook of xdist, called if a run has several processes."""
    return ByServer(config, log)
