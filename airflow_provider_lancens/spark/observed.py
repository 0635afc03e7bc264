"""Reports operations on tables to the observer of their namespace: outcomes, commits, lost attempts.

A namespace has an observer only if one was set, as the hooks of Airflow connections do if Airflow's metrics
are on; on executors and in jobs outside Airflow, nothing is reported.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from airflow_provider_lancens.spark.results import Result

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

P = ParamSpec("P")
T = TypeVar("T")
_OBSERVER = "lancens_observer"


@dataclass(frozen=True, slots=True)
class Ended:
    """An operation on a table has ended."""

    result: Result


@dataclass(frozen=True, slots=True)
class Failed:
    """An operation on a table has failed."""

    table: str
    operation: str


@dataclass(frozen=True, slots=True)
class Committed:
    """A version of a table was made."""

    table: str
    operation: str
    seconds: float
    """How long its commit took, with the attempts before."""


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """An attempt to commit made no version."""

    table: str
    operation: str
    is_conflict: bool
    """Whether another writer was first, and not an error of the catalog or the storage the reason."""
    is_repeated: bool
    """Whether another attempt follows."""


Event: TypeAlias = Ended | Failed | Committed | AttemptLost
Observer: TypeAlias = Callable[[Event], None]
"""A function that gets events, in any thread; it must not raise."""


def observe(namespace: Any, observer: Observer) -> None:
    """Report this process's operations on a namespace's tables to an observer; its copies have none."""
    setattr(namespace, _OBSERVER, observer)


def notify(namespace: Any, event: Event) -> None:
    """Report an event to the observer of a namespace, if it has one."""
    observer: Observer | None = getattr(namespace, _OBSERVER, None)
    if observer is not None:
        observer(event)


def observed(operation: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Report the result or the failure of a function to the observer of its namespace.

    Args:
        operation: the verb, for failures; empty takes the verb of the function's `context` or `change`.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            given = signature.bind(*args, **kwargs).arguments
            target = given["context"].target if "context" in given else None
            namespace = given["namespace"] if target is None else target.namespace
            if getattr(namespace, _OBSERVER, None) is None:
                return function(*args, **kwargs)
            try:
                result = function(*args, **kwargs)
            except Exception:
                notify(namespace, Failed(_table(given), operation or _operation(given)))
                raise
            if isinstance(result, Result):
                notify(namespace, Ended(result))
            return result

        return called

    return decorated


@dataclass(slots=True)
class ObservedCommit:
    """One commit, whose attempts and success are reported."""

    target: ResolvedTable
    operation: str
    _began: float

    @classmethod
    def begin(cls, target: ResolvedTable, operation: str) -> ObservedCommit:
        """Begin to measure the time of a commit."""
        return cls(target, operation, time.monotonic())

    def made(self) -> None:
        """Tell that the version was made."""
        seconds = time.monotonic() - self._began
        notify(self.target.namespace, Committed(str(self.target.id), self.operation, seconds))

    def lost(self, *, is_conflict: bool, is_repeated: bool = True) -> None:
        """Tell that an attempt made no version."""
        lost = AttemptLost(str(self.target.id), self.operation, is_conflict, is_repeated)
        notify(self.target.namespace, lost)


def _table(given: dict[str, Any]) -> str:
    if "context" in given:
        return str(given["context"].target.id)
    return str(given["table"] if "table" in given else given["release_set"])


def _operation(given: dict[str, Any]) -> str:
    return str(given["context"].change.MODE if "context" in given else given["change"].OPERATION)
