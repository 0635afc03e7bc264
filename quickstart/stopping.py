"""What Ctrl-C and SIGTERM do: the first one ends everything cleanly, the second one at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from quickstart.children import Children

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SIGNALED = 128
"""Exit codes of processes that a signal ended begin here."""
STOPPING = "stopping; Ctrl-C again ends at once"


class Stopped(BaseException):
    """The first signal arrived.

    Args:
        number: which one.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = _SIGNALED + number


@contextmanager
def stopping_on_signals(children: Children, say: Callable[[str], object]) -> Iterator[None]:
    """Raise `Stopped` in the block at the first signal; at the second, kill all children and exit.

    A metastore that this process started ends with it, since it reads from a pipe of this process.

    Args:
        children: the processes to kill.
        say: prints a line; called at the first signal.
    """

    def exit_at_once(number: int, frame: FrameType | None) -> None:
        del frame
        children.kill()
        os._exit(_SIGNALED + number)

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        for one in _SIGNALS:
            signal.signal(one, exit_at_once)
        try:
            say(STOPPING)
        except RuntimeError:  # the signal interrupted a print, and these can't be nested
            os.write(sys.stdout.fileno(), f"\n{STOPPING}\n".encode())
        raise Stopped(number)

    previous = {one: signal.signal(one, stop) for one in _SIGNALS}
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is stop:  # else the next signal is the second one
            for one, handler in previous.items():
                signal.signal(one, handler)
