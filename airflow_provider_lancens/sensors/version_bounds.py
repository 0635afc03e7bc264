"""The versions that a sensor waits for, by its arguments and its result in an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.template_args import (
    parse_result_table,
    parse_version,
)
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus, VersionCondition

Commits = Mapping[TableId, Sequence[TableStatus]]
"""The tables that tasks have committed to, each as of the commit, by the tables' identifiers."""
Bound = int | str | Mapping[str, Any] | None
"""A version for all tables, or one by table, possibly rendered from a template."""


@dataclass(frozen=True, slots=True)
class AwaitedVersion:
    """The condition that a sensor waits for on one table."""

    table: TableId
    condition: VersionCondition
    previous: int | None
    """The version that the awaited one follows, for tasks that read the changes between them."""
    upstream: Sequence[TableStatus] = ()
    """Tables of this name, as of commits of tasks upstream of the sensor, if their version is awaited."""
    location: str | None = None
    """Where the table was when an earlier run has seen `previous`; None if that isn't known."""

    def seen_at(self, status: TableStatus) -> AwaitedVersion:
        """Return what to wait for at a polled status.

        A version that was committed before the sensor began, to a table at another location, or that isn't in
        the table, was committed to a table of the same name in another catalog, or before this table was
        created again. A table at another location is another one, which doesn't continue the versions that an
        earlier run has seen.
        """
        if self.upstream and status.version:
            here = [made for made in self.upstream if made.location in (None, status.location)]
            made = here if status.version >= _newest(here) else ()
            if len(made) < len(self.upstream):
                condition = _unbounded(self.previous, self.location, made)
                return replace(self, condition=condition, upstream=made).seen_at(status)
        if self.location in (None, status.location) or status.location is None:
            return self
        if status.version < (self.previous or 0):  # which says that it was created again
            return self
        condition = self.condition if self.upstream else VersionCondition()
        return replace(self, condition=condition, previous=None, location=None)

    def result(self, status: TableStatus) -> dict[str, Any]:
        """Return the sensor's result for a polled table, for its XCom."""
        return {
            "table": str(status.table),
            "version": status.version,
            "previous_version": self.previous,
            "location": status.location,
        }

    def last_result(self) -> dict[str, Any]:
        """Return the result for a table that couldn't be polled: what an earlier run has seen of it."""
        return self.result(TableStatus(self.table, self.location, self.previous or 0))

    def data_since(self, status: TableStatus) -> int:
        """Return the last version whose data is known; 0 if the table was recreated, and all of it is new."""
        known = self.condition.last_known or 0
        return known if known <= status.version else 0

    def first(self, status: TableStatus) -> int:
        """Return the first version that meets the condition; the polled one if any version does."""
        known = self.condition.last_known
        return status.version if known is None else min(known + 1, status.version)

    @property
    def is_reached_by_any_commit(self) -> bool:
        """Whether it is a version that must exist, whatever has created it, rather than a change."""
        return self.condition.min_version is not None and self.condition.after_version is None

    def after(self, status: TableStatus) -> VersionCondition:
        """Return the condition to wait for after this status was polled and didn't end the wait."""
        if not status.version:
            return VersionCondition() if self.upstream else self.condition  # see `seen_at`
        return replace(self.condition, other_than=status.version, at_location=status.location)


def read_wanted(
    tables: Sequence[TableId],
    after_version: Bound,
    min_version: Bound,
    seen_before: Callable[[], Mapping[TableId, TableStatus]],
    made_upstream: Callable[[], Commits] = dict,
) -> list[AwaitedVersion]:
    """Return the condition to wait for on each table.

    Args:
        tables: their identifiers.
        after_version: the sensor's argument.
        min_version: the sensor's argument.
        seen_before: called if a table has neither bound; what an earlier run has seen, by table.
        made_upstream: called if such a table was seen before; what tasks upstream of the sensor committed in
            the same run, which ends the wait even if an earlier run has seen it.

    Raises:
        AirflowFailException: a bound is not a version, is empty or staged, or is given for a table that isn't
            waited for.
    """
    after = _by_table("after_version", after_version, tables)
    least = _by_table("min_version", min_version, tables)
    unbounded = [table for table in tables if after[table] is None and least[table] is None]
    earlier = seen_before() if unbounded else {}
    made = made_upstream() if any(table in earlier for table in unbounded) else {}
    return [
        _awaited(table, earlier.get(table), made.get(table, ()))
        if table in unbounded
        else AwaitedVersion(table, VersionCondition(after[table], least[table]), after[table])
        for table in tables
    ]


def _awaited(table: TableId, earlier: TableStatus | None, made: Sequence[TableStatus]) -> AwaitedVersion:
    previous, location = (None, None) if earlier is None else (earlier.version, earlier.location)
    return AwaitedVersion(table, _unbounded(previous, location, made), previous, made, location)


def _unbounded(previous: int | None, location: str | None, made: Sequence[TableStatus]) -> VersionCondition:
    """Return the condition without a bound: a commit of a task upstream, or another version than before."""
    if made:
        return VersionCondition(min_version=_newest(made))
    return VersionCondition(other_than=previous, at_location=location)


def _newest(made: Sequence[TableStatus]) -> int:
    return max((status.version for status in made), default=0)


def commits_in_xcoms(xcoms: Any) -> dict[TableId, list[TableStatus]]:
    """Return the greatest version of each table and location among the XComs of tasks, if they wrote it.

    XComs of other operators that have the same keys and name no table are left out.
    """
    made: dict[TableId, dict[str | None, TableStatus]] = {}
    pending = [xcoms]
    while pending:
        xcom = pending.pop()
        if isinstance(xcom, Mapping):
            table, version = _table_in(xcom), xcom.get("version")
            if table is not None and isinstance(version, int) and _has_written(xcom):
                at = made.setdefault(table, {})
                given = xcom.get("location")
                location = given if isinstance(given, str) else None
                if location not in at or at[location].version < version:
                    at[location] = TableStatus(table, location, version)
        elif isinstance(xcom, Iterable) and not isinstance(xcom, str | bytes):
            pending.extend(xcom)
    return {table: [*at.values()] for table, at in made.items()}


def _has_written(xcom: Mapping[str, Any]) -> bool:
    """Return whether the task made its version, now or in an earlier try, and readers see it."""
    is_made = xcom.get("outcome") in ("done", "found", "skipped")
    return is_made and xcom.get("version") != xcom.get("previous_version")


def _table_in(xcom: Mapping[str, Any]) -> TableId | None:
    try:
        return parse_result_table(xcom["table"]) if isinstance(xcom.get("table"), str) else None
    except AirflowFailException:
        return None


def seen_by_earlier_run(xcom: Any) -> dict[TableId, TableStatus]:
    """Return what an earlier run has seen, by table, from the XCom of the same task in that run."""
    if not isinstance(xcom, Mapping):
        return {}
    results = [xcom] if isinstance(xcom.get("table"), str) else list(xcom.values())  # by name, also "table"
    seen = [
        TableStatus(parse_result_table(result["table"]), result.get("location"), result["version"])
        for result in results
        if isinstance(result, Mapping) and "table" in result and "version" in result
    ]
    return {status.table: status for status in seen}


def _by_table(argument: str, value: Bound, tables: Sequence[TableId]) -> dict[TableId, int | None]:
    if value is None:
        return dict.fromkeys(tables)
    if not isinstance(value, Mapping):
        return dict.fromkeys(tables, _bound(argument, value))
    given = {
        parse_result_table(table): _bound(f"{argument}[{table!r}]", bound) for table, bound in value.items()
    }
    unknown = sorted(str(table) for table in given.keys() - set(tables))
    if unknown:
        known = ", ".join(map(str, tables))
        raise AirflowFailException(
            f"{argument}: expected tables of the argument table, {known}, got {unknown[0]!r}"
        )
    return {table: given.get(table) for table in tables}


def _bound(argument: str, value: Any) -> int:
    """Return a bound that was given: an empty one doesn't mean a wait without a bound."""
    version = parse_version(argument, value)
    if version is None:
        raise AirflowFailException(
            f"{argument}={value!r}: it is given, but empty; leave it out for a wait without a bound, or pass "
            "0 for any version"
        )
    return version
