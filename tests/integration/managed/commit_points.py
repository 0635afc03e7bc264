"""Writers that are killed at a known point of a commit."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from unittest.mock import patch

from airflow_provider_lancens.namespace.managed.publication import Publication
from airflow_provider_lancens.namespace.storage.manifests import Manifests


class SimulatedDeath(BaseException):
    """A BaseException, so that no handler runs after the simulated death."""


@dataclass(frozen=True)
class Point:
    """Just before or just after a step of a commit."""

    owner: Any
    step: str
    after: bool
    committed: bool
    """Whether what was to be committed is there then."""

    @contextmanager
    def interrupted_by(self, event: Callable[[], object]) -> Iterator[None]:
        """Call a function when this point is first reached in the block."""
        real, left = getattr(self.owner, self.step), [event]

        def step(*arguments: Any, **options: Any) -> Any:
            answer = real(*arguments, **options) if self.after else None
            while left:
                left.pop()()
            return answer if self.after else real(*arguments, **options)

        with patch.object(self.owner, self.step, step):
            yield

    @contextmanager
    def ended_by(self, die: Callable[[], NoReturn]) -> Iterator[None]:
        """Simulate death at this point in the block."""
        real = getattr(self.owner, self.step)

        def step(*arguments: Any, **options: Any) -> NoReturn:
            if self.after:
                real(*arguments, **options)
            die()

        with patch.object(self.owner, self.step, step):
            yield


POINTS: Mapping[str, Point] = {
    "before-it-is-recorded": Point(Publication, "record", after=False, committed=False),
    "before-the-commit": Point(Publication, "record", after=True, committed=False),
    "after-the-commit": Point(Publication, "finish", after=False, committed=True),
    "before-the-staged-manifest-goes": Point(Manifests, "remove", after=False, committed=True),
    "at-the-end": Point(Publication, "finish", after=True, committed=True),
}


def simulate_death() -> NoReturn:
    """Raise an exception, so that the test's process continues."""
    raise SimulatedDeath


def kill_process() -> NoReturn:
    """Kill this process by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")
