"""What the observer of a namespace is told."""

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_lancens.spark.observed import (
    AttemptLost,
    Committed,
    Ended,
    Event,
    Failed,
    ObservedCommit,
    notify,
    observe,
    observed,
)
from airflow_provider_lancens.spark.results import Result

RESULT = Result(table="db$t", operation="compact", outcome="done", version=2, previous_version=1, seconds=0.1)


@pytest.fixture
def namespace() -> SimpleNamespace:
    return SimpleNamespace()


@pytest.fixture
def told(namespace: SimpleNamespace) -> list[Event]:
    """What the namespace's observer is told."""
    events: list[Event] = []
    observe(namespace, events.append)
    return events


@observed("compact")
def compact(namespace: Any, table: str, result: Any = RESULT) -> Any:
    """Compact."""
    if isinstance(result, Exception):
        raise result
    return result


def test_the_result_of_a_function_is_told(namespace: SimpleNamespace, told: list[Event]) -> None:
    assert compact(namespace, table="db$t") is RESULT
    assert told == [Ended(RESULT)]
    assert (compact.__name__, compact.__doc__) == ("compact", "Compact.")


def test_a_failure_is_told_and_raised(namespace: SimpleNamespace, told: list[Event]) -> None:
    with pytest.raises(OSError, match="gone"):
        compact(namespace, "db$t", OSError("gone"))
    assert told == [Failed("db$t", "compact")]


def test_a_failure_has_the_verb_of_the_context(namespace: SimpleNamespace, told: list[Event]) -> None:
    @observed()
    def write(rows: Any, context: Any) -> Any:
        raise OSError("gone")

    target = SimpleNamespace(namespace=namespace, id="db$t")
    with pytest.raises(OSError, match="gone"):
        write(None, SimpleNamespace(target=target, change=SimpleNamespace(MODE="upsert")))
    assert told == [Failed("db$t", "upsert")]


def test_what_a_kill_ends_and_what_is_no_result_is_not_told(
    namespace: SimpleNamespace, told: list[Event]
) -> None:
    @observed("compact")
    def killed(namespace: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed(namespace)
    compact(namespace, "db$t", None)
    assert told == []


def test_a_namespace_without_an_observer_tells_nobody() -> None:
    assert compact(SimpleNamespace(), "db$t") is RESULT
    notify(object(), Ended(RESULT))


def test_a_commit_tells_its_attempts_and_its_time(namespace: SimpleNamespace, told: list[Event]) -> None:
    target: Any = SimpleNamespace(namespace=namespace, id="db$t")
    commit = ObservedCommit.begin(target, "append")
    commit.lost(is_conflict=True)
    commit.made()

    lost, made = told
    assert lost == AttemptLost("db$t", "append", is_conflict=True, is_repeated=True)
    assert isinstance(made, Committed)
    assert (made.table, made.operation) == ("db$t", "append")
    assert 0 <= made.seconds < 60
