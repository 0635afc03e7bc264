"""The age of the newest data of a table, compared with its limit; maintenance isn't new data."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.namespace.update_interval import interval_text, parse_interval
from airflow_provider_lancens.spark.results import FreshnessResult, elapsed
from airflow_provider_lancens.spark.table.history import is_maintenance, kept_version, transactions

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.identifiers import TableId

_MOST = 100
"""Commits of maintenance that are passed over, each for a request or two."""


class DataCommit(NamedTuple):
    """The newest commit that changed rows or columns."""

    version: int
    time: datetime
    is_exact: bool
    """Whether this commit changed data. If not, only older commits did, which aren't kept or weren't read."""


def newest_data(dataset: LanceDataset) -> DataCommit:
    """Return the newest commit that changed data.

    Args:
        dataset: the dataset, opened at its newest version, or at a staged one, which changes data itself. One
            request if that changed data.
    """
    if is_detached(dataset.version):  # a staged version's number says nothing of the versions before it
        return DataCommit(dataset.version, _committed(dataset), is_exact=True)
    oldest = dataset
    for number, (version, transaction) in enumerate(transactions(dataset, 0)):
        if transaction is None or number == _MOST:
            break
        oldest = kept_version(dataset, version) or oldest
        if not is_maintenance(transaction):
            return DataCommit(version, _committed(oldest), is_exact=True)
    return DataCommit(oldest.version, _committed(oldest), is_exact=False)


def freshness(
    table: TableId, dataset: LanceDataset | None, max_age: timedelta | None, now: datetime | None = None
) -> FreshnessResult:
    """Return how old the newest data of a table is.

    Args:
        table: its identifier.
        dataset: its dataset, opened at its newest version; None if nothing has been written.
        max_age: how old they may be; None if any age is right.
        now: the time; None takes this machine's.
    """
    started, found, age = time.monotonic(), None, None
    if dataset is not None:
        found = newest_data(dataset)
        age = max((now or datetime.now(UTC)) - found.time, timedelta())
    return FreshnessResult(
        table=str(table),
        operation="check_freshness",
        outcome="unchanged",
        version=None if found is None else found.version,
        previous_version=None if found is None else found.version,
        updated_at=None if found is None else found.time.isoformat(timespec="seconds"),
        age_seconds=None if age is None else round(age.total_seconds(), 3),
        max_age_seconds=None if max_age is None else max_age.total_seconds(),
        is_late=max_age is not None and (age is None or age > max_age),
        reason=_reason(found, age, max_age),
        seconds=elapsed(started),
    )


def expected_age(declared: str | None, given: timedelta | str | None = None) -> timedelta | None:
    """Return the maximum age of a table's data: the given one, or its property's; None if there is neither.

    Raises:
        InvalidInputError: (13) it is no duration.
    """
    if given is not None:
        text = str(int(given.total_seconds())) if isinstance(given, timedelta) else given
        return parse_interval(text, "max_age")
    return None if declared is None else parse_interval(declared)


def _reason(found: DataCommit | None, age: timedelta | None, max_age: timedelta | None) -> str:
    expected = "" if max_age is None else f", expected every {interval_text(max_age)}"
    if found is None or age is None:
        return f"no data has been written yet{expected}"
    before = "" if found.is_exact else "or more "
    which = f"version {found.version}, committed {found.time:%Y-%m-%d %H:%M:%S} UTC"
    what = which if found.is_exact else f"only maintenance since {which}"
    return f"the newest data are {interval_text(age)} {before}old ({what}){expected}"


def _committed(dataset: LanceDataset) -> datetime:
    committed: Any = dataset.get_version()["timestamp"]
    moment: datetime = committed.astimezone(UTC)
    return moment
