"""Work as Spark tasks on executors, which answer the driver in JSON, so that it runs none of their code."""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, Union

import pyarrow as pa

from airflow_provider_lancens.spark.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Class = TypeVar("Class", bound=type[Any])

_KIND, _VALUE = "kind", "value"
_OF_LANCE = {"DataFile": "lance.fragment", "Index": "lance.dataset", "IndexFile": "lance.dataset"}
_own_classes: dict[str, type[Any]] = {}


def answer_class(added: Class) -> Class:
    """Allow a dataclass in answers."""
    _own_classes[added.__name__] = added
    return added


def encoded(answer: Any) -> bytes:
    """Return an answer as JSON.

    Raises:
        TypeError: it contains an object of a class that isn't allowed in answers.
    """
    return json.dumps(_plain(answer)).encode()


def decoded(answer: bytes) -> Any:
    """Return an answer that `encoded` made.

    Raises:
        RuntimeError: it is anything else.
    """
    try:
        return _object(json.loads(answer))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, pa.ArrowInvalid) as error:
        raise RuntimeError(f"Spark returned {len(answer)} bytes that are no answer of a task") from error


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_plain(element) for element in value]
    name, parts = type(value).__name__, None
    if name in _EXACT:
        parts = _EXACT[name][0](value)
    elif isinstance(value, pa.DataType):
        name, parts = "DataType", _text(pa.schema([pa.field("", value)]).serialize().to_pybytes())
    elif dataclasses.is_dataclass(value) and _is_allowed(type(value)):
        # Some fields of Lance's classes begin with an underscore, and their arguments don't.
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        parts = {field.lstrip("_"): _plain(part) for field, part in fields}
    if parts is None:
        raise TypeError(f"a task's answer may not contain an object of the class {name}")
    return {_KIND: name, _VALUE: parts}


def _object(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_object(element) for element in plain]
    if not isinstance(plain, dict):
        return plain
    name, parts = plain[_KIND], plain[_VALUE]
    if name in _EXACT:
        return _EXACT[name][1](parts)
    if name == "DataType":
        return pa.ipc.read_schema(pa.py_buffer(_bytes(parts))).field(0).type
    return _class(name)(**{field: _object(part) for field, part in parts.items()})


def _class(name: str) -> Any:
    if name in _OF_LANCE:
        return getattr(importlib.import_module(_OF_LANCE[name]), name)
    return _own_classes[name]


def _is_allowed(found: type[Any]) -> bool:
    name = found.__name__
    return (name in _OF_LANCE or name in _own_classes) and _class(name) is found


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _bitmap(positions: list[int]) -> Any:
    from lance.bitmap import Bitmap

    return Bitmap(positions)


def _rewritten(text: str) -> Any:
    from lance import optimize

    results: Any = optimize.RewriteResult  # its stub lacks the method
    return results.from_json(text)


_EXACT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bytes": (_text, _bytes),
    "datetime": (datetime.isoformat, datetime.fromisoformat),
    "tuple": (lambda value: _plain(list(value)), lambda parts: tuple(_object(parts))),
    "set": (lambda value: _plain(list(value)), lambda parts: set(_object(parts))),
    "frozenset": (lambda value: _plain(list(value)), lambda parts: frozenset(_object(parts))),
    "dict": (
        lambda value: _plain([list(item) for item in value.items()]),
        lambda parts: dict(_object(parts)),
    ),
    "Bitmap": (list, _bitmap),
    "RewriteResult": (lambda value: value.json(), _rewritten),
}
"""By class name: the functions that convert its objects to plain values, and back."""


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
        # If the task is killed, don't wait for jobs that the signal handler has canceled.
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
        """Wait for tasks to finish; return the finished ones, possibly none after the timeout."""
        done, self._running = wait(self._running, timeout, FIRST_COMPLETED)
        return list(done)


def tasks_at_once(session: SparkSession) -> int:
    """Return how many tasks the session can run at the same time, as far as it is known."""
    context = None if is_remote(session) else session.sparkContext
    return _REMOTE_TASKS if context is None else int(context.defaultParallelism)
