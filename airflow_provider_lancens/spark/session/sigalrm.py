"""Cancel Spark jobs before a SIGALRM handler raises: Airflow implements execution timeouts by this signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def before_sigalrm(abort: Callable[[], None]) -> Iterator[None]:
    """Stop Spark's jobs before a SIGALRM handler raises.

    Otherwise PySpark, while it cleans up, sends the JVM another request over the socket where the running
    job's answer is pending, and waits for the end of that job. The error it raises then, once its JVM has
    ended, must not hide the one of the SIGALRM handler.

    Args:
        abort: stops the jobs.
    """
    rings = signal.getsignal(signal.SIGALRM)
    if not callable(rings) or threading.current_thread() is not threading.main_thread():
        yield  # no alarm is set, or another thread handles it
        return
    raised: BaseException | None = None

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        abort()
        try:
            rings(number, frame)
        except BaseException as error:
            raised = error
            raise

    signal.signal(signal.SIGALRM, handler)
    try:
        yield
    except BaseException as error:
        if raised is not None and error is not raised:
            raise raised from error
        raise
    finally:
        signal.signal(signal.SIGALRM, rings)
