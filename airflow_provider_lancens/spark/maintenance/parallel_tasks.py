"""Run pieces of work as Spark tasks on executors, and return their results to the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Self, TypeAlias, TypeVar, Union

import pyarrow as pa

from airflow_provider_lancens.spark.maintenance.task_answers import decoded, encoded
from airflow_provider_lancens.spark.session.handles import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answer = TypeVar("Answer")
Spark: TypeAlias = Union["SparkSession", Callable[[], "SparkSession"]]
"""A session, or a function that starts one, called only if there is work for it."""

_COLUMNS = "number long, answer binary"
_REMOTE_TASKS = 8
"""Spark Connect doesn't say how many cores there are."""
_SCHEMA = pa.schema([("number", pa.int64()), ("answer", pa.binary())])


def run_in_parallel(spark: Spark, pieces: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """Run the pieces on the executors.

    A task that Spark runs again runs its piece again: only the result of the attempt that reached the driver
    counts.

    Args:
        spark: the session, which may be one of Spark Connect, or a function that starts it.
        pieces: picklable callables, whose results `task_answers` can encode.

    Returns:
        The results, in the order of the pieces.
    """
    count = len(pieces)
    session = spark() if callable(spark) else spark
    answered = session.range(0, count, 1, count).mapInArrow(_Work(pieces).run, _COLUMNS).collect()
    by_number = {row["number"]: decoded(bytes(row["answer"])) for row in answered}
    return [by_number[number] for number in range(count)]


@dataclass(frozen=True, slots=True)
class _Work(Generic[Answer]):
    pieces: Sequence[Callable[[], Answer]]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                row = {"number": number, "answer": encoded(self.pieces[number]())}
                yield pa.RecordBatch.from_pylist([row], schema=_SCHEMA)


@dataclass(slots=True)
class ParallelTasks(Generic[Answer]):
    """Runs pieces on the executors, each as a job of one task, so that results arrive as tasks finish.

    One job with all of them would return no result before all are there.
    """

    session: SparkSession
    most: int
    """The maximum number of pieces that run at the same time."""
    _pool: ThreadPoolExecutor = field(init=False, repr=False)
    _running: set[Future[Answer]] = field(default_factory=set, init=False, repr=False)

    @property
    def running(self) -> int:
        """How many pieces are submitted, and their results not taken."""
        return len(self._running)

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(self.most, thread_name_prefix="lance-spark-task")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A task that is killed doesn't wait for the jobs that its signal handler has canceled.
        is_killed = kind is not None and not issubclass(kind, Exception)
        self._pool.shutdown(wait=not is_killed, cancel_futures=True)

    def submit(self, piece: Callable[[], Answer]) -> None:
        """Start a piece, with the tags of this thread's jobs, by which they are canceled."""
        from pyspark import __version__, inheritable_thread_target

        def run() -> Answer:
            return run_in_parallel(self.session, [piece])[0]

        takes_session = is_remote(self.session) or not __version__.startswith("3.")
        inherits = inheritable_thread_target(self.session) if takes_session else inheritable_thread_target
        self._running.add(self._pool.submit(inherits(run)))

    def finished(self, timeout: float) -> list[Future[Answer]]:
        """Wait for pieces to finish; return those that have, which may be none after so many seconds."""
        done, self._running = wait(self._running, timeout, FIRST_COMPLETED)
        return list(done)


def tasks_at_once(session: SparkSession) -> int:
    """Return how many tasks the session can run at the same time, as far as it says."""
    context = None if is_remote(session) else session.sparkContext
    return _REMOTE_TASKS if context is None else int(context.defaultParallelism)
