"""The machine that a benchmark runs on: without its name, and with how busy it is."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("apache-airflow", "pyspark", "pylance", "lance-namespace", "pyarrow")


def this_machine() -> dict[str, Any]:
    """Return what a reader needs to know to judge the figures."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory),
        "processor": _processor(),
        "system": platform.system(),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def load() -> float:
    """Return how many processes wanted to run in the last minute, on average, this one among them."""
    return round(os.getloadavg()[0], 1)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # an environment for one of the peers needn't have all of them
            continue
    return found
