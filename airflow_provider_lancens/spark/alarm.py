"""An alarm that rings while Spark works: Airflow keeps a task's execution timeout by one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def before_alarm(abort: Callable[[], None]) -> Iterator[None]:
    """Stop Spark's work before an alarm's handler raises.

    Otherwise PySpark, on its way out, asks the JVM for something else on the socket where the answer to the
    running job is still due, and waits for the end of that job. And what it raises then, once its JVM is
    gone, must not hide what the alarm raised.

    Args:
        abort: stops the work.
    """
    rings = signal.getsignal(signal.SIGALRM)
    if not callable(rings) or threading.current_thread() is not threading.main_thread():
        yield  # no alarm is set, or it rings in another thread
        return
    raised: list[BaseException] = []

    def handler(number: int, frame: FrameType | None) -> None:
        abort()
        try:
            rings(number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    signal.signal(signal.SIGALRM, handler)
    try:
        yield
    except BaseException as error:
        if raised and error is not raised[0]:
            raise raised[0] from error
        raise
    finally:
        signal.signal(signal.SIGALRM, rings)
