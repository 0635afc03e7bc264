"""How far Spark is, told in the log while a driver waits for it: seldom, and only where something moved."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.opened import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that runs, and what it has read so far, from files or from another stage."""

    number: int
    tasks: int
    done: int
    rows: int | None
    """None where Spark doesn't tell."""
    bytes: int

    def __str__(self) -> str:
        rows = "" if self.rows is None else f"{self.rows:,} rows, "
        return (
            f"stage {self.number}: {self.done} of {self.tasks} tasks, {rows}{self.bytes / 1e6:,.1f} MB read"
        )


class ProgressLog:
    """Writes stages into the log where they have changed since the last time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = self._last = time.monotonic()
        self._told: Sequence[Stage] = ()

    def tell(self, stages: Sequence[Stage]) -> None:
        """Write a line, unless nothing moved or the last one is too young."""
        now = time.monotonic()
        if not stages or stages == self._told or now - self._last < self._seconds:
            return
        self._told, self._last = stages, now
        rows = sum(stage.rows or 0 for stage in stages) / max(now - self._started, 0.001)
        rate = f" ({rows:,.0f} rows/s)" if rows else ""
        _log.info("%s%s", "; ".join(map(str, stages)), rate)


@contextmanager
def progress_logged(spark: SparkSession, seconds: float = 10.0) -> Iterator[None]:
    """Tell of the session's stages for the length of the block.

    Spark Connect tells tasks and bytes, from 4.0 on; rows it doesn't know.

    Args:
        spark: the session.
        seconds: the least time between two lines.
    """
    log = ProgressLog(seconds)
    if not is_remote(spark):
        with _polling(partial(_look, spark.sparkContext), log, seconds):
            yield
    elif hasattr(spark, "registerProgressHandler"):
        handler = partial(_hear, log)
        spark.registerProgressHandler(handler)  # type: ignore[arg-type]  # a plain function does
        yield
        spark.removeProgressHandler(handler)  # type: ignore[arg-type]
    else:
        yield


@contextmanager
def _polling(look: Callable[[], list[Stage]], log: ProgressLog, seconds: float) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        while not over.wait(seconds):
            try:
                log.tell(look())
            except Exception as error:  # noqa: BLE001 a stage that is just over, a Spark that is: work goes on
                _log.debug("no progress to be told: %s", type(error).__name__)

    threading.Thread(target=watch, name="lance-spark-progress", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _look(context: Any) -> list[Stage]:
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


def _hear(log: ProgressLog, stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:  # noqa: ARG001 Spark's
    running = [stage for stage in stages or () if not stage.done]
    log.tell([Stage(s.stage_id, s.num_tasks, s.num_completed_tasks, None, s.num_bytes_read) for s in running])
