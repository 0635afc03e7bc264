"""Upkeep as steps of a history: all maintenance in one, orphans, release sets, who decides the versions."""

import os
import random
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance

from airflow_provider_lancens.spark.maintenance import CompactionOptions, IndexSpec, Thresholds
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import DEFAULT_THRESHOLDS, MaintenancePlan
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.release_sets import move_release_set
from tests.histories.checks import MismatchError
from tests.histories.model import State
from tests.histories.own_steps import INDEX_TYPES, Step
from tests.histories.values import condition
from tests.histories.work import Work

_SHORTEST = timedelta(minutes=10)
_AN_HOUR = 3600


def orphans(work: Work, chance: random.Random) -> State:
    """Remove orphans of a table whose files are all old, with the file of a write that failed among them."""
    lost = _lose_file(work, chance)
    work.note("remove_orphans", older_than=_SHORTEST)
    found = remove_orphans(work.table.namespace, work.table.id, older_than=_SHORTEST)
    if lost is not None and (lost.exists() or f"data/{lost.name}" not in found.paths):
        raise MismatchError(f"{lost.name} wasn't removed, but {found.paths}")
    return work.state


def maintain(work: Work, chance: random.Random) -> State:
    """Compact, index, clean up and remove orphans, by one call."""
    lost = _lose_file(work, chance)
    columns = [one for one in work.state.columns if one.type in INDEX_TYPES and one.type != "vector"]
    kinds = {one.name: chance.choice(INDEX_TYPES[one.type]) for one in chance.sample(columns, 1)}
    plan = MaintenancePlan(
        compaction=CompactionOptions(target_rows_per_fragment=chance.choice((8, 1000))),
        indices=tuple(IndexSpec(name, kind, f"{name}_{kind.lower()}") for name, kind in kinds.items()),
        older_than=timedelta(0),
        keep_versions=chance.choice((1, 3)),
        orphans_older_than=_SHORTEST,
        thresholds=chance.choice((Thresholds(), DEFAULT_THRESHOLDS)),
    )
    work.note("maintain_table", plan)
    done = maintain_table(work.table.spark, work.table.namespace, work.table.id, plan)
    dataset = work.table.open()
    if done.version != dataset.version:
        raise MismatchError(f"maintain_table says version {done.version}, but it is {dataset.version}")
    built = {one.name for one in dataset.describe_indices()}
    missing = {one.name for one in plan.indices} - built
    if missing and dataset.count_rows():  # without rows, there is nothing to index
        raise MismatchError(f"indices {missing} weren't built: {done}")
    if lost is not None and ("orphans" in done.steps) == lost.exists():
        raise MismatchError(f"{lost.name}: exists is {lost.exists()} after {done}")
    return work.state


def release(work: Work, chance: random.Random) -> State:
    """Make a version that of a release set, which keeps it from clean-ups."""
    version, keep = chance.choice(work.known_versions()), chance.choice((1, 2, 3))
    named: dict[str, Any] = {"keep_releases": keep, "allow_older": True}
    if chance.random() < 0.5:
        named["expected_version"] = work.releases[-1][0] if work.releases else 0
    members = {work.table.id: version}
    work.note("move_release_set", work.table.release_set, members, **named)
    made = move_release_set(work.table.namespace, work.table.release_set, members, **named)
    work.releases = [*work.releases, (made.version, version)][-keep:]
    return work.state


def convert(work: Work, _: random.Random) -> State | None:
    """Let the storage decide the versions, or the metastore again."""
    if not work.table.on_metastore:
        return None
    wanted = "storage" if work.table.managed else "impl"
    work.note("convert_table", managed_by=wanted)
    if not work.table.namespace.convert_table(work.table.parts, managed_by=wanted):
        raise MismatchError(f"the table was {wanted}-managed before")
    work.table.managed = wanted == "impl"
    return work.state


def adopt(work: Work, chance: random.Random) -> State | None:
    """Adopt what a client that doesn't know the metastore has committed, or find nothing to adopt."""
    if not work.table.managed:
        return None
    verdict, expected = "consistent", work.state
    if chance.random() < 0.8:
        verdict, expected = "storage_ahead", _bypassed(work, chance)
    work.note("adopt_table")
    found = work.table.namespace.adopt_table(work.table.parts)
    again = work.table.namespace.compare_table(work.table.parts)
    if (found.verdict, again.verdict) != (verdict, "consistent"):
        raise MismatchError(f"adopted {found}, expected {verdict}; then {again}")
    return expected


def _bypassed(work: Work, chance: random.Random) -> State:
    state = work.state
    dataset = lance.dataset(work.table.location)
    match chance.choice(("append", "delete", "restore")):
        case "append":
            rows = work.rows(chance, state.columns)
            data = work.arrow(rows, state.columns)
            work.note("lance.write_dataset", "rows", "location", mode="append")
            lance.write_dataset(data, work.table.location, mode="append")
            return state.with_rows([*state.rows, *rows])
        case "delete":
            where = condition(chance, state)
            work.note("lance.dataset(location).delete", where.text)
            dataset.delete(where.text)
            return state.with_rows(row for row in state.rows if not where.matches(row))
        case _:
            version = chance.choice(work.known_versions())
            work.note(f"lance.dataset(location, {version}).restore")
            lance.dataset(work.table.location, version).restore()
            return work.model.states[version]


def _lose_file(work: Work, chance: random.Random) -> Path | None:
    """Make all files of the table old, and perhaps leave the file of a write that failed."""
    folder, lost = Path(work.table.location), None
    if chance.random() < 0.7:
        data = work.arrow(work.rows(chance, work.state.columns), work.state.columns)
        known = set(_files(folder))
        lance.fragment.write_fragments(data, work.table.open(), mode="append")
        (lost,) = set(_files(folder)) - known
        work.script.append(f"# a write failed, and left {lost.name}")
    then = time.time() - _AN_HOUR
    for file in _files(folder):
        os.utime(file, (then, then))
    return lost


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


UPKEEP: dict[Step, int] = {orphans: 2, maintain: 2, release: 2, convert: 2, adopt: 2}
"""The steps, and how often they are drawn."""
