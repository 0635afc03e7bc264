"""Samples of all processes below some roots, taken in a thread."""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import psutil

from tests.e2e.soak.growth import MEBIBYTE, Sample

INTERVAL = 10
LONGEST_TASK = 600
"""Seconds; for a maintenance on a busy machine."""
EXECUTOR, IDLE = "airflow worker -- LocalExecutor", "<idle>"
"""The title of a process of the executor, and what it contains between two tasks."""
Key = tuple[str, int, float]
"""A component, and one of its processes: id and start."""


class Sampler:
    """Samples each component's process and its descendants until the block ends.

    Args:
        roots: the components' processes, by name.
    """

    def __init__(self, roots: Callable[[], Mapping[str, int]]) -> None:
        self._roots = roots
        self._began = time.time()
        self._ended = threading.Event()
        self._executor = ThreadPoolExecutor(1)
        self.titles: dict[Key, str] = {}
        self.samples: dict[Key, list[Sample]] = defaultdict(list)

    def __enter__(self) -> Self:
        self._sampling = self._executor.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._executor.shutdown()

    def check(self) -> None:
        """See that nothing ended the samples early; after the block."""
        self._sampling.result()

    def lasting(self, warm_up: float) -> dict[str, list[Sample]]:
        """The samples of each process that lived from the warm-up to the end, by a unique name."""
        end = max(samples[-1].seconds for samples in self.samples.values())
        return {
            self._name(key): samples
            for key, samples in self.samples.items()
            if key[-1] <= self._began + warm_up and samples[-1].seconds >= end - warm_up
        }

    def outlived(self, warm_up: float) -> list[str]:
        """Processes that began after the warm-up and lived longer than any task or parser of DAGs."""
        return [
            self._name(key)
            for key, samples in self.samples.items()
            if key[-1] > self._began + warm_up
            and samples[-1].seconds - (key[-1] - self._began) > LONGEST_TASK
        ]

    def _name(self, key: Key) -> str:
        component, pid, _ = key
        return f"{component} {pid} ({self.titles[key]})"

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL):
            seconds = time.time() - self._began
            for component, pid in self._roots().items():
                root = psutil.Process(pid)
                for process in [root, *root.children(recursive=True)]:
                    self._sample(seconds, component, process)

    def _sample(self, seconds: float, component: str, process: psutil.Process) -> None:
        try:
            with process.oneshot():
                memory = process.memory_info()
                sample = Sample(
                    seconds,
                    (memory.rss - memory.shared) / MEBIBYTE,
                    process.num_fds(),
                    process.num_threads(),
                    len(process.net_connections(kind="tcp")),
                )
                title = " ".join(process.cmdline())
                if title.startswith(EXECUTOR) and IDLE not in title:
                    return  # it has what its task needs: it is judged while it has none
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # it ended: a task, or a parser of DAGs
            return
        key = component, process.pid, process.create_time()
        self.titles.setdefault(key, _readable(title))
        self.samples[key].append(sample)


def _readable(command: str) -> str:
    """Without paths, and without the task that it runs."""
    return re.sub(r"\S*/", "", command).partition(":")[0][:50].strip()
