"""Log Spark's progress while a driver waits for it: at intervals, and only if it changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.amounts import counted, rate_of, size_of
from airflow_provider_lancens.spark.session.handles import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stage:
    """A running stage, and what it has read so far, from files or from another stage."""

    number: int
    tasks: int
    done: int
    rows: int | None
    """None if Spark doesn't report them."""
    bytes: int

    def __str__(self) -> str:
        # Neither is known of what Spark doesn't read itself, such as our own sources.
        read = [counted(self.rows, "row")] if self.rows else []
        read += [f"{size_of(self.bytes)}"] if self.bytes else []
        more = f", {', '.join(read)} read" if read else ""
        return f"stage {self.number}: {self.done} of {counted(self.tasks, 'task')}{more}"


class ProgressLog:
    """Logs stages if they have changed since the last time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = self._last = time.monotonic()
        self._reported: Sequence[Stage] = ()

    def report(self, stages: Sequence[Stage]) -> None:
        """Log a line, unless nothing changed or the last one is too recent."""
        now = time.monotonic()
        if not stages or stages == self._reported or now - self._last < self._seconds:
            return
        self._reported, self._last = stages, now
        rows = sum(stage.rows or 0 for stage in stages)
        _log.info("%s%s", "; ".join(map(str, stages)), rate_of(rows, now - self._started))


@contextmanager
def progress_logged(spark: SparkSession, seconds: float = 10.0) -> Iterator[None]:
    """Log the session's stages for the duration of the block.

    Spark Connect reports tasks and bytes since 4.0, but no rows.

    Args:
        spark: the session.
        seconds: the minimum time between two lines.
    """
    log = ProgressLog(seconds)
    if not is_remote(spark):
        with _polling(partial(_running_stages, spark.sparkContext), log, seconds):
            yield
    elif hasattr(spark, "registerProgressHandler"):
        handler = partial(_on_progress, log)
        spark.registerProgressHandler(handler)  # type: ignore[arg-type]  # a plain function does
        yield
        spark.removeProgressHandler(handler)  # type: ignore[arg-type]
    else:
        yield


@contextmanager
def _polling(read_stages: Callable[[], list[Stage]], log: ProgressLog, seconds: float) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        while not over.wait(seconds):
            try:
                log.report(read_stages())
            except Exception as error:  # noqa: BLE001 a stage that is just over, a Spark that is: work goes on
                _log.debug("Progress is not available: %s", type(error).__name__)

    threading.Thread(target=watch, name="lance-spark-progress", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _running_stages(context: Any) -> list[Stage]:
    store = context._jsc.sc().statusStore()
    return [_stage(store.lastStageAttempt(number)) for number in context.statusTracker().getActiveStageIds()]


def _stage(data: Any) -> Stage:
    return Stage(
        data.stageId(),
        data.numTasks(),
        data.numCompleteTasks(),
        data.inputRecords() + data.shuffleReadRecords(),
        data.inputBytes() + data.shuffleReadBytes(),
    )


def _on_progress(log: ProgressLog, stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:  # noqa: ARG001 Spark's
    running = [stage for stage in stages or () if not stage.done]
    log.report(
        [Stage(s.stage_id, s.num_tasks, s.num_completed_tasks, None, s.num_bytes_read) for s in running]
    )
