"""The machine that a benchmark runs on: without its name, and with how busy it is."""

import os
import platform
import time
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


def wait_until_quiet() -> None:
    """Wait until less than one process wants to run, on average of the last minute, and say so each minute.

    ``LANCENS_BENCHMARK_LOAD`` names another limit, such as 100 to measure at once, for a first try.
    """
    limit = float(os.environ.get("LANCENS_BENCHMARK_LOAD", "1"))
    checks = 0
    while os.getloadavg()[0] >= limit:
        if checks % 12 == 0:
            print(f"\nwaiting until the load is below {limit:g}; it is {load()}", flush=True)  # noqa: T201
        checks += 1
        time.sleep(5)


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
