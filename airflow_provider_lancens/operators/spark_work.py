"""Work on Spark that ends with its task, whoever ends that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow_provider_lancens.hooks.errors import LanceRetryableError

_log = logging.getLogger(__name__)


class Killed(BaseException):
    """Leaves whatever the task is doing; no `except Exception` on the way holds it up."""


class SparkWork:
    """What runs on Spark for a task, and how to stop it."""

    def __init__(self) -> None:
        self.abort: Callable[[], None] | None = None
        """Stops it; None as long as it only begins."""
        self.killed = False

    def kill(self) -> None:
        """Stop it, and leave the block that waits for it; called by Airflow in a signal's handler.

        Airflow itself would go on with the task afterwards.

        Raises:
            Killed: always.
        """
        self.killed = True
        _log.warning("The task is killed: stopping its work on Spark")
        if self.abort is not None:
            self.abort()
        raise Killed

    @contextmanager
    def session(self, app_name: str, conf: Mapping[str, str]) -> Iterator[Any]:
        """A session in the task's process, whose progress the log tells."""
        from airflow_provider_lancens.spark.jvm import hush
        from airflow_provider_lancens.spark.progress import progress_logged
        from airflow_provider_lancens.spark.session import opened_session

        hush()
        with opened_session(app_name, conf) as opened:
            self.abort = opened.abort
            with progress_logged(opened.spark):
                yield opened.spark


@contextmanager
def killable() -> Iterator[SparkWork]:
    """Work that can be killed for the length of the block.

    Raises:
        LanceRetryableError: it was.
    """
    work = SparkWork()
    try:
        yield work
    except BaseException as error:
        if work.killed:
            raise LanceRetryableError("the task was killed, and with it its work on Spark") from error
        raise
