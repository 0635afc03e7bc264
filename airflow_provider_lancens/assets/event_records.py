"""The new versions of tables, for a run of a DAG that is scheduled on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_SCHEME = "lance"
_LOCATION = "location"
"""Field of an event and a record: the root of the table's dataset."""


def new_versions(triggering_asset_events: Mapping[Any, Iterable[Any]]) -> dict[str, dict[str, Any]]:
    """Return one record of new versions for each table whose events started the run.

    Events of tasks and of watched tables are treated alike. Several events of one table give one record, from
    the oldest previous version to the newest one. Events without a new version, and events of other assets,
    are left out.

    Args:
        triggering_asset_events: the variable of this name in the task's context; a `@task` function gets it
            as an argument of this name.

    Returns:
        By the table's identifier: ``{"table": str, "previous_version": int | None, "version": int}``,
        ``"location": str`` if an event has it, and ``"partitions": list[str]`` if each of the events has
        some. ``previous_version`` is None if the table is new, was recreated, or the events don't say it.
        Empty if a person started the run.

    Raises:
        AirflowFailException: the events are of tables of one identifier with different asset authorities.
    """
    records: dict[str, dict[str, Any]] = {}
    runs: dict[str, set[tuple[Any, Any]]] = {}
    authorities: dict[str, str] = {}
    for event in _in_order(triggering_asset_events):
        found = record_of(getattr(event, "extra", None))
        if found is not None:
            table, known = found["table"], records.get(found["table"])
            if (authority := _authority(event)) is not None:
                _check_same_authority(table, authorities.setdefault(table, authority), authority)
            run = getattr(event, "source_dag_id", None), getattr(event, "source_run_id", None)
            known_runs = runs.setdefault(table, set())
            is_of_task = None not in run
            is_of_known_run = is_of_task and run in known_runs
            known_runs.add(run)
            if known is not None:
                found = merged(known, found, is_of_known_run=is_of_known_run, may_be_late=is_of_task)
            records[table] = found
    return records


def _in_order(triggering_asset_events: Mapping[Any, Iterable[Any]]) -> list[Any]:
    """Return each event once, in the order of time; an event of an alias is also an event of its asset."""
    events = list({id(event): event for each in triggering_asset_events.values() for event in each}.values())
    if any(getattr(event, "timestamp", None) is None for event in events):
        return events
    return sorted(events, key=lambda event: event.timestamp)  # Airflow's database returns them in any order


def _authority(event: Any) -> str | None:
    """Return the asset authority of the table that an event is of; None if it is of another asset."""
    uri = getattr(getattr(event, "asset", None), "uri", None)
    scheme, _, rest = str(uri).partition("://")
    return rest.partition("/")[0] if scheme == _SCHEME else None


def _check_same_authority(table: str, first: str, second: str) -> None:
    if first != second:
        from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException

        tables = (f"{_SCHEME}://{authority}/{table.replace('$', '/')}" for authority in (first, second))
        raise AirflowFailException(
            f"triggering_asset_events: has events of {' and '.join(tables)}, which are two tables named "
            f"{table!r}; call new_versions once for each: new_versions({{asset: events[asset]}})"
        )


def record_of(extra: Any) -> dict[str, Any] | None:
    """Return the record in an event's extra, if it has a new version; a watcher has it below ``payload``."""
    if not isinstance(extra, Mapping):
        return None
    given = payload if isinstance(payload := extra.get("payload"), Mapping) else extra
    table, version, previous = given.get("table"), given.get("version"), given.get("previous_version")
    if not isinstance(table, str) or not isinstance(version, int) or version == previous:
        return None
    record = {"table": table, "previous_version": previous, "version": version}
    if isinstance(given.get(_LOCATION), str):
        record[_LOCATION] = given[_LOCATION]
    if isinstance(given.get("partitions"), list):
        record["partitions"] = given["partitions"]
    return record


def merged(
    known: dict[str, Any], found: dict[str, Any], *, is_of_known_run: bool = False, may_be_late: bool = True
) -> dict[str, Any]:
    """Merge two records of a table, in the order of their events.

    Args:
        known: the record of the earlier events.
        found: the record of the next event.
        is_of_known_run: whether its run has caused one of the earlier events, too: its tasks may end in
            another order than they commit in, and don't create the table again.
        may_be_late: whether it may be of an older version than the earlier events. A watcher's isn't: there,
            a smaller version says that the table was created again, or set back.
    """
    locations = known.get(_LOCATION), found.get(_LOCATION)
    if None not in locations and len({*locations}) > 1:
        return {**found, "previous_version": None}  # another table of this name, or it was moved
    older, newer = sorted((known, found), key=lambda record: record["version"])
    is_same_table = is_of_known_run or (may_be_late and all(map(_is_own_place, locations)))
    if newer is known and found["previous_version"] is None and not is_same_table:
        return found  # a smaller version that follows none: the table was created again
    if older["version"] == newer["version"]:  # a repeated event may not know what it follows
        known_previous = [record["previous_version"] for record in (older, newer)]
        previous = min((version for version in known_previous if version is not None), default=None)
    elif older["previous_version"] is None or newer["previous_version"] is None:
        previous = None  # the table is new or was recreated, and its first rows are unread too
    else:  # of a task with several writes, the newer record may begin before the other
        previous = min(older["previous_version"], newer["previous_version"])
    record = {
        "table": newer["table"],
        "previous_version": previous,
        "version": newer["version"],
    }
    if (location := locations[0] or locations[1]) is not None:
        record[_LOCATION] = location
    if "partitions" in known and "partitions" in found:
        record["partitions"] = sorted({*known["partitions"], *found["partitions"]})
    return record


def _is_own_place(location: str | None) -> bool:
    """Return whether it is known that no other table of the name has been at a location."""
    # Here, since DAG files import this module.
    from airflow_provider_lancens.namespace.storage.default_layout import is_own_place

    return location is not None and is_own_place(location)
