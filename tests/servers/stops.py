"""A run that is stopped before one of its requests to a double, while other runs begin and end."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

SECONDS = 30

Result = TypeVar("Result")
SetGate = Callable[[Callable[[object], object]], object]
"""Makes doubles call something with each request, before it takes effect."""


@dataclass
class Stop:
    """Stops the first client that makes the n-th request; later requests pass."""

    at: int
    seconds: float = SECONDS
    """The longest stop."""
    seen: int = 0
    reached: threading.Event = field(default_factory=threading.Event)
    resumed: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: object) -> None:
        with self.lock:
            if self.reached.is_set():
                return
            self.seen += 1
            if self.seen <= self.at:
                return
            self.reached.set()
        assert self.resumed.wait(self.seconds)


def stops_of(set_gate: SetGate, run: Callable[[], object]) -> int:
    """Count the requests of a run without others: the places where it can be stopped."""
    stop = Stop(at=2**31)
    set_gate(stop)
    run()
    return stop.seen


def run_stopped(
    set_gate: SetGate,
    at: int,
    run: Callable[[], Result],
    others: Callable[[], object],
    seconds: float = SECONDS,
) -> Result:
    """Stop a run before one of its requests, run others meanwhile, then let it go on.

    Args:
        set_gate: of the doubles that both speak to.
        at: the number of requests that the run makes before it is stopped; a run that makes fewer ends first.
        run: called in a thread of its own.
        others: called while the run is stopped.
        seconds: for which it may be stopped, and may then take.

    Returns:
        What the run returned.
    """
    stop = Stop(at, seconds)
    set_gate(stop)
    with ThreadPoolExecutor(1) as process:
        running = process.submit(run)
        while not stop.reached.wait(0.005):
            if running.done():
                break
        try:
            others()
        finally:
            stop.resumed.set()
        return running.result(seconds)
