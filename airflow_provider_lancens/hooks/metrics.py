"""Metrics of waits, polls, writes and commits, which Airflow sends to StatsD, Datadog or OpenTelemetry.

`METRICS` lists them. They go through Airflow's own client, with its prefix, its allow list and its tags.
Nothing is imported or sent unless one of `statsd_on`, `statsd_datadog_enabled` and `otel_on` is set in
section ``[metrics]`` of Airflow's configuration. An error of the client is logged once, and never fails a
task or a poll.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.spark.observed import Event
    from airflow_provider_lancens.spark.results import Result

Kind = Literal["counter", "timer", "gauge"]
WaitOutcome = Literal["succeeded", "timed_out", "failed"]

_log = logging.getLogger(__name__)
_SWITCHES = ("statsd_on", "statsd_datadog_enabled", "otel_on")
_SENT_BY = {"counter": "incr", "timer": "timing", "gauge": "gauge"}
_NOT_IN_A_TAG = re.compile(r"[^A-Za-z0-9_./-]")
_CONNECTION, _TABLE, _OPERATION = "lance_conn_id", "table", "operation"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, as the documentation lists it."""

    name: str
    kind: Kind
    description: str
    tags: tuple[str, ...]

    def __post_init__(self) -> None:
        METRICS[self.name] = self


METRICS: dict[str, Metric] = {}
"""All metrics, by name."""


def _by_outcome(prefix: str, tags: tuple[str, ...], descriptions: dict[str, str]) -> dict[str, Metric]:
    return {
        outcome: Metric(f"{prefix}.{outcome}", "counter", description, tags)
        for outcome, description in descriptions.items()
    }


_OF_POLLS = (_CONNECTION,)
_OF_WAITS = (_TABLE, _CONNECTION)
_OF_OPERATIONS = (_TABLE, _OPERATION, _CONNECTION)

POLLS = Metric("lance.poll.succeeded", "counter", "polls of which at least one table answered", _OF_POLLS)
FAILED_POLLS = Metric("lance.poll.failed", "counter", "polls of which no table answered", _OF_POLLS)
POLL_TIME = Metric(
    "lance.poll.duration", "timer", "the catalog's answer to a poll of all its tables", _OF_POLLS
)
POLLED_TABLES = Metric("lance.poll.tables", "gauge", "tables in the last poll", _OF_POLLS)
RUNNING_WAITS = Metric("lance.poll.waits", "gauge", "waits that the last poll was for", _OF_POLLS)
LISTING_TIME = Metric(
    "lance.listing.duration",
    "timer",
    "a listing of versions that the storage decides",
    _OF_WAITS,
)
FAILED_LISTINGS = Metric("lance.listing.failed", "counter", "listings that failed", _OF_WAITS)

WAITS = _by_outcome(
    "lance.wait",
    _OF_WAITS,
    {
        "succeeded": "waits of sensors that found a version",
        "timed_out": "waits that ended by `timeout` or `execution_timeout`",
        "failed": "waits that failed",
    },
)
WAIT_TIME = Metric("lance.wait.duration", "timer", "a wait, from its first poke", _OF_WAITS)

OPERATIONS = _by_outcome(
    "lance.operation",
    _OF_OPERATIONS,
    {
        "done": "operations that changed the table",
        "staged": "writes that were staged",
        "found": "operations that an earlier try of the task had done",
        "skipped": "writes that were skipped, since another execution wrote under the key",
        "unchanged": "operations for which there was nothing to do",
        "planned": "dry runs",
        "failed": "operations that raised an error",
    },
)
OPERATION_TIME = Metric(
    "lance.operation.duration",
    "timer",
    "an operation that didn't fail, with Spark",
    _OF_OPERATIONS,
)
INSERTED_ROWS = Metric("lance.rows.inserted", "counter", "rows that were added", _OF_OPERATIONS)
UPDATED_ROWS = Metric("lance.rows.updated", "counter", "rows that upserts replaced", _OF_OPERATIONS)
DELETED_ROWS = Metric("lance.rows.deleted", "counter", "rows that were removed", _OF_OPERATIONS)
WRITTEN_FILES = Metric("lance.files.written", "counter", "data files that were written", _OF_OPERATIONS)
WRITTEN_BYTES = Metric("lance.bytes.written", "counter", "their size", _OF_OPERATIONS)
REMOVED_FILES = Metric("lance.files.removed", "counter", "files that clean-ups removed", _OF_OPERATIONS)
REMOVED_BYTES = Metric("lance.bytes.removed", "counter", "their size", _OF_OPERATIONS)

DATA_AGE = Metric("lance.data.age", "gauge", "seconds since the newest data were committed", _OF_WAITS)

COMMITS = Metric("lance.commit.made", "counter", "versions that were made", _OF_OPERATIONS)
COMMIT_TIME = Metric("lance.commit.duration", "timer", "a commit, with the attempts before", _OF_OPERATIONS)
CONFLICTS = Metric("lance.commit.conflicts", "counter", "attempts that another writer won", _OF_OPERATIONS)
RETRIES = Metric("lance.commit.retries", "counter", "attempts to commit after the first one", _OF_OPERATIONS)


@cache
def is_on() -> bool:
    """Return whether Airflow sends metrics anywhere."""
    from airflow.configuration import conf

    return any(conf.getboolean("metrics", switch, fallback=False) for switch in _SWITCHES)


def send(metric: Metric, value: float, **tags: object) -> None:
    """Send a value of a metric, if metrics are on; never raises.

    Args:
        metric: the metric.
        value: a number to count, or that a gauge has from now on; of a timer, seconds.
        tags: what the value is of; None leaves a tag out.
    """
    if not is_on():
        return
    given = {name: _NOT_IN_A_TAG.sub("_", str(tag)) for name, tag in tags.items() if tag is not None}
    sent = timedelta(seconds=value) if metric.kind == "timer" else value
    try:
        getattr(_client(), _SENT_BY[metric.kind])(metric.name, sent, tags=given)
    except Exception as error:  # noqa: BLE001 - whatever the client raises, the work goes on
        _report(f"{type(error).__name__}: {error}")


def observer(lance_conn_id: str) -> Callable[[Event], None]:
    """Return a function that counts what happens to the tables of a connection, see `spark.observed`."""
    return partial(_observed, lance_conn_id)


def count_poll(lance_conn_id: str, seconds: float, *, tables: int, waits: int, failed: int) -> None:
    """Count a poll.

    Args:
        lance_conn_id: the connection.
        seconds: how long it took.
        tables: the number of its tables.
        waits: the number of waits that it was for.
        failed: the number of tables that didn't answer.
    """
    if not is_on():
        return
    of = {_CONNECTION: lance_conn_id}
    send(FAILED_POLLS if failed and failed == tables else POLLS, 1, **of)
    send(POLL_TIME, seconds, **of)
    send(POLLED_TABLES, tables, **of)
    send(RUNNING_WAITS, waits, **of)


@contextmanager
def counted_listing(lance_conn_id: str, table: TableId) -> Iterator[None]:
    """Count the block, which lists the versions of a table."""
    if not is_on():
        yield
        return
    of, began = {_CONNECTION: lance_conn_id, _TABLE: _tag_of(str(table))}, monotonic()
    try:
        yield
    except Exception:
        send(FAILED_LISTINGS, 1, **of)
        raise
    send(LISTING_TIME, monotonic() - began, **of)


def count_wait(outcome: WaitOutcome, seconds: float, table: str | None, lance_conn_id: str) -> None:
    """Count the end of a sensor's wait.

    Args:
        outcome: how it ended.
        seconds: how long it took.
        table: the table; None if there are several.
        lance_conn_id: the connection.
    """
    of = {_CONNECTION: lance_conn_id, _TABLE: None if table is None else _tag_of(table)}
    send(WAITS[outcome], 1, **of)
    send(WAIT_TIME, seconds, **of)


def _observed(lance_conn_id: str, event: Event) -> None:
    from airflow_provider_lancens.spark.observed import AttemptLost, Committed, Ended

    if isinstance(event, Ended):
        _count_result(event.result, lance_conn_id)
        return
    of = {_CONNECTION: lance_conn_id, _TABLE: _tag_of(event.table), _OPERATION: event.operation}
    if isinstance(event, Committed):
        send(COMMITS, 1, **of)
        send(COMMIT_TIME, event.seconds, **of)
    elif isinstance(event, AttemptLost):
        if event.is_conflict:
            send(CONFLICTS, 1, **of)
        if event.is_repeated:
            send(RETRIES, 1, **of)
    else:
        send(OPERATIONS["failed"], 1, **of)


def _count_result(result: Result, lance_conn_id: str) -> None:
    from airflow_provider_lancens.spark.results import FreshnessResult

    of = {_CONNECTION: lance_conn_id, _TABLE: _tag_of(result.table)}
    if isinstance(result, FreshnessResult):
        if result.age_seconds is not None:
            send(DATA_AGE, result.age_seconds, **of)
        return
    of[_OPERATION] = result.operation
    send(OPERATIONS[result.outcome], 1, **of)
    send(OPERATION_TIME, result.seconds, **of)
    if result.outcome in ("done", "staged"):
        for metric, amount in _amounts(result):
            if amount:
                send(metric, amount, **of)


def _amounts(result: Result) -> Iterator[tuple[Metric, int]]:
    """Yield what was written or removed; a publication and a restore write nothing but a version."""
    from airflow_provider_lancens.spark.results import (
        ComputeResult,
        ExpireResult,
        OrphansResult,
        RowsResult,
    )

    if isinstance(result, (ExpireResult, OrphansResult)):
        yield REMOVED_FILES, result.files
        yield REMOVED_BYTES, result.bytes
    elif isinstance(result, ComputeResult):
        yield WRITTEN_FILES, result.files
        yield WRITTEN_BYTES, result.bytes
    elif isinstance(result, RowsResult) and result.operation not in ("publish", "restore"):
        yield INSERTED_ROWS, result.inserted
        yield UPDATED_ROWS, result.updated
        yield DELETED_ROWS, result.deleted
        if result.bytes:  # `files` of a deletion are the files that had the rows, and nothing is written
            yield WRITTEN_FILES, result.files
            yield WRITTEN_BYTES, result.bytes


def _tag_of(table: str) -> str:
    """Return a table's identifier with dots, since backends don't accept a dollar sign in a tag."""
    return table.replace("$", ".")


@cache
def _report(problem: str) -> None:
    _log.warning("Airflow's metrics: %s; metrics of Lance tables are lost, and the work goes on", problem)


@cache
def _client() -> Any:
    """Return Airflow's client, which it creates at the first value."""
    try:
        from airflow.sdk.observability.stats import Stats
    except ImportError:  # Airflow 3.1, which needs no initialization
        from airflow.stats import Stats

        return Stats
    home = sys.modules[Stats.__module__]
    factory = getattr(home, "_factory", getattr(Stats, "factory", True))
    if factory is None or getattr(factory, "__name__", "") == "NoStatsLogger":
        _initialize(Stats)
    return Stats


def _initialize(stats: Any) -> None:
    """Initialize Airflow's client where Airflow itself has initialized another one: in a triggerer."""
    from airflow.configuration import conf
    from airflow.sdk.observability.metrics import stats_utils

    get_stats_factory: Any = stats_utils.get_stats_factory
    try:
        factory = get_stats_factory()
    except TypeError:  # Airflow 3.2
        stats.initialize(factory=get_stats_factory(stats))
        return
    stats.initialize(factory=factory, export_legacy_names=conf.getboolean("metrics", "legacy_names_on"))
