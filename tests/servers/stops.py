"""A run that is stopped before one of its requests to the S3 double, while other runs begin and end."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from tests.servers.s3_double import S3Double
from tests.servers.s3_requests import Request

SECONDS = 30

Result = TypeVar("Result")


@dataclass
class Stop:
    """Stops the first client that makes the n-th request; later requests pass."""

    at: int
    seen: int = 0
    reached: threading.Event = field(default_factory=threading.Event)
    resumed: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> None:
        with self.lock:
            if self.reached.is_set():
                return
            self.seen += 1
            if self.seen <= self.at:
                return
            self.reached.set()
        assert self.resumed.wait(SECONDS)


def stops_of(s3: S3Double, run: Callable[[], object]) -> int:
    """Count the requests of a run without others: the places where it can be stopped."""
    s3.gate = stop = Stop(at=2**31)
    run()
    return stop.seen


def run_stopped(s3: S3Double, at: int, run: Callable[[], Result], others: Callable[[], object]) -> Result:
    """Stop a run before one of its requests, run others meanwhile, then let it go on.

    Args:
        s3: the double that both speak to.
        at: the number of requests that the run makes before it is stopped; a run that makes fewer ends first.
        run: called in a thread of its own.
        others: called while the run is stopped.

    Returns:
        What the run returned.
    """
    s3.gate = stop = Stop(at)
    with ThreadPoolExecutor(1) as process:
        running = process.submit(run)
        while not stop.reached.wait(0.005):
            if running.done():
                break
        try:
            others()
        finally:
            stop.resumed.set()
        return running.result(SECONDS)
