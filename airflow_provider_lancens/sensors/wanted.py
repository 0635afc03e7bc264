"""Which version of which table a sensor waits for: its arguments, and what it saw in an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.arguments import parse_list, parse_table, parse_version
from airflow_provider_lancens.hooks.versions import TableVersion, VersionCondition

Versions = Mapping[str, int]
"""Versions by table."""
Bound = int | str | Mapping[str, Any] | None
"""A version for all tables, or one by table, as it may come out of a template."""

_TABLES = "database$table, or a list of these"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is waited for of one table."""

    table: str
    condition: VersionCondition
    previous: int | None
    """The version that the one to come follows, for whoever reads the changes between them."""

    def result(self, seen: TableVersion) -> dict[str, Any]:
        """What the sensor hands on of a table that was seen."""
        return {
            "table": seen.table,
            "version": seen.version,
            "previous_version": self.previous,
            "location": seen.location,
        }

    def data_since(self, seen: TableVersion) -> int:
        """The last version whose data isn't news; 0 where the table was made again, and all of it is."""
        known = self.condition.last_known or 0
        return known if known <= seen.version else 0

    def after(self, seen: TableVersion | None) -> VersionCondition:
        """What is worth another look once this was seen, and found not to be enough."""
        return self.condition if seen is None else replace(self.condition, other_than=seen.version)


def read_tables(table: str | Sequence[str]) -> list[str]:
    """The identifiers that the argument names, each once.

    Raises:
        AirflowFailException: it names none, or what can be no table.
    """
    named = [table] if isinstance(table, str) else parse_list("table", table, _TABLES)
    if not named:
        raise AirflowFailException(f"table={table!r}: names no table; allowed: {_TABLES}")
    return list(dict.fromkeys(str(parse_table(one)) for one in named))


def read_wanted(
    tables: Sequence[str], after_version: Bound, min_version: Bound, seen_before: Callable[[], Versions]
) -> list[Wanted]:
    """What is waited for of each table.

    Args:
        tables: their identifiers.
        after_version: as the sensor takes it.
        min_version: as the sensor takes it.
        seen_before: asked where a table has neither.

    Raises:
        AirflowFailException: a bound is no version, or is given for a table that isn't waited for.
    """
    after = _by_table("after_version", after_version, tables)
    least = _by_table("min_version", min_version, tables)
    unbounded = [table for table in tables if after[table] is None and least[table] is None]
    earlier = seen_before() if unbounded else {}
    return [
        Wanted(
            table,
            VersionCondition(after[table], least[table], earlier.get(table) if table in unbounded else None),
            earlier.get(table) if table in unbounded else after[table],
        )
        for table in tables
    ]


def read_seen(xcom: Any) -> dict[str, int]:
    """The versions in what the same task returned in an earlier run, by table."""
    if not isinstance(xcom, Mapping):
        return {}
    results = [xcom] if "table" in xcom else list(xcom.values())
    return {one["table"]: one["version"] for one in results if isinstance(one, Mapping) and "version" in one}


def _by_table(argument: str, value: Bound, tables: Sequence[str]) -> dict[str, int | None]:
    if not isinstance(value, Mapping):
        return dict.fromkeys(tables, parse_version(argument, value))
    given = {str(parse_table(table)): parse_version(argument, one) for table, one in value.items()}
    unknown = sorted(given.keys() - set(tables))
    if unknown:
        raise AirflowFailException(
            f"{argument}: {unknown[0]!r} isn't waited for; allowed: {', '.join(tables)}"
        )
    return {table: given.get(table) for table in tables}
