"""Writers that die at a known point of a commit."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from unittest.mock import patch

from airflow_provider_lancens.namespace.commits import Publication
from airflow_provider_lancens.namespace.manifests import Manifests


class Died(BaseException):
    """Nobody catches it: what comes after a death doesn't happen."""


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
        """The first one to arrive at this point within the block is held up by an event."""
        real, left = getattr(self.owner, self.step), [event]

        def step(*arguments: Any, **options: Any) -> Any:
            answer = real(*arguments, **options) if self.after else None
            while left:
                left.pop()()
            return answer if self.after else real(*arguments, **options)

        with patch.object(self.owner, self.step, step):
            yield

    @contextmanager
    def of_death(self, die: Callable[[], NoReturn]) -> Iterator[None]:
        """Whoever arrives at this point within the block dies."""
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


def vanish() -> NoReturn:
    """Die within this process, so that the test lives on."""
    raise Died


def be_killed() -> NoReturn:
    """Die as the kernel does it."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")
