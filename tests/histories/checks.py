"""What must hold after each step, whatever was done before."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import lance
from lance_namespace.errors import LanceNamespaceError

from airflow_provider_lancens.spark.changes.changed_values import changed_values
from airflow_provider_lancens.spark.release_sets import Member, find_release_set
from tests.histories.model import Column, Rows, State, counted, plain, type_name
from tests.histories.values import WORDS, conditions
from tests.histories.work import Work
from tests.support.reads import read_changes

_ADDS = ("insert", "update_postimage")
_OWN_TAGS = ("lancens-", "release-set")
_HALF = 0.5
_MOST_ROWS = 1_000
_NAMED = ("int", "string", "date", "timestamp", "timestamp_ntz")
"""Types whose values are compared as text."""
_UNKNOWN = (11, 13)
"""Codes with which changes that can't be known are refused."""


class MismatchError(AssertionError):
    """The table isn't what the model says."""


def check(work: Work, chance: random.Random, *, at_the_end: bool = False) -> Counter[str]:
    """Check the newest version, and at random some of the others; return how often each kind was checked.

    Raises:
        MismatchError: the table isn't what the model says.
    """
    dataset = work.table.open()
    done: Counter[str] = Counter()
    check_version(dataset, work.state)
    check_tags(work, dataset)
    versions = work.known_versions()
    released = [version for _, version in work.releases]
    if missing := {work.model.newest, *work.model.tags.values(), *released} - set(versions):
        raise MismatchError(f"versions {sorted(missing)} are gone, which are the newest, tagged or released")
    check_releases(work)
    check_version(work.table.open(chance.choice(versions)), None, work)
    done["contents"] += 2
    for after, version in _pairs(chance, versions, 4 if at_the_end else 1):
        done.update([check_changes(work, after, version)])
        if at_the_end or chance.random() < _HALF:
            done.update([check_values(work, chance, after, version)])
    indices = sorted(dataset.describe_indices(), key=lambda index: str(index.name))
    for index in indices if at_the_end else chance.sample(indices, min(len(indices), 1)):
        check_index(work, chance, dataset, index)
        done["indices"] += 1
    return done


def _pairs(chance: random.Random, versions: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Return pairs of versions, half of them what the last step changed."""
    if len(versions) < 2:
        return []
    newest = (versions[-2], versions[-1])
    drawn = [tuple(sorted(chance.sample(versions, 2))) for _ in range(most)]
    return list({newest if chance.random() < _HALF else (one[0], one[1]) for one in drawn})


def check_version(dataset: lance.LanceDataset, state: State | None, work: Work | None = None) -> None:
    """Check the columns and rows of a version."""
    expected = state or work.model.states[dataset.version]
    schema = [(one.name, type_name(one.type)) for one in dataset.schema]
    if schema != expected.schema:
        raise MismatchError(f"version {dataset.version} has columns {schema}, not {expected.schema}")
    read = dataset.to_table().to_pylist() if schema else []
    _check_rows(f"version {dataset.version}", counted(read, [name for name, _ in schema]), expected.counted())


def check_tags(work: Work, dataset: lance.LanceDataset) -> None:
    """Check the versions of the tags."""
    tags = {
        name: tag["version"] for name, tag in dataset.tags.list().items() if not name.startswith(_OWN_TAGS)
    }
    if tags != work.model.tags:
        raise MismatchError(f"the tags are {tags}, not {work.model.tags}")


def check_releases(work: Work) -> None:
    """Check that each release that is kept has its version of the table, and the last one is the newest."""
    for made, version in work.releases:
        found = find_release_set(work.table.namespace, work.table.release_set, made)
        if found != (made, {work.table.id: Member(version, work.table.location)}):
            raise MismatchError(f"release {made} has {found}, not version {version}")
    if work.releases:
        newest, _ = find_release_set(work.table.namespace, work.table.release_set)
        if newest != work.releases[-1][0]:
            raise MismatchError(f"the release set is at {newest}, not {work.releases[-1][0]}")


def check_changes(work: Work, after: int, version: int) -> str:
    """Check that the changes replayed on the older rows give the newer ones."""
    old, new = work.model.states[after], work.model.states[version]
    try:
        frame = read_changes(
            *(work.table.spark, work.table.namespace, work.table.id), after_version=after, version=version
        )
        rows = work.table.collected(frame)
    except LanceNamespaceError as error:
        if int(error.code) not in _UNKNOWN or (work.stable and _all_kept(work, version)):
            raise
        return f"changes refused ({int(error.code)})"
    names = [one.name for one in new.columns]
    replayed = old.counted(new.columns)
    for row in rows:
        made_by = row["_commit_version"]
        if made_by is not None and not after < made_by <= version:
            raise MismatchError(f"changes {after} to {version}: a row of version {made_by}")
        (one,) = counted([row], names)
        replayed[one] += 1 if row["_change_type"] in _ADDS else -1
    _check_rows(
        f"changes {after} to {version} {_summary(rows)}",
        Counter({row: count for row, count in replayed.items() if count}),
        new.counted(),
    )
    return "changes" if rows else "no changes"


def check_values(work: Work, chance: random.Random, after: int, version: int) -> str:
    """Check that each value of a row that changed is named, and none that neither version has."""
    old, new = work.model.states[after], work.model.states[version]
    position = chance.choice([n for n, one in enumerate(new.columns) if one.type in _NAMED] or [0])
    column = new.columns[position]
    try:
        found = changed_values(
            work.table.namespace, work.table.id, column.name, after_version=after, version=version
        )
    except LanceNamespaceError as error:
        if int(error.code) not in _UNKNOWN or _all_kept(work, version):
            raise
        return f"values refused ({int(error.code)})"
    before, now = old.counted(new.columns), new.counted()
    changed = _texts([*(before - now), *(now - before)], position)
    known = _texts([*before, *now], position)
    if not changed <= set(found) <= known:
        raise MismatchError(
            f"changed_values({column.name!r}) {after} to {version}: {found}; expected {sorted(changed)}, and "
            f"at most {sorted(known)}"
        )
    return "values"


def check_index(work: Work, chance: random.Random, dataset: lance.LanceDataset, index: Any) -> None:
    """Check that an index finds what a scan and the model find."""
    column = work.state.column(index.field_names[0])
    if column.type == "vector":
        _check_nearest(work, dataset, column)
        return
    if "INVERTED" in index.index_type.upper():
        _check_text(work, chance, dataset, column)
        return
    for condition in conditions(chance, column):
        expected = _keys(work, [row for row in work.state.rows if condition.matches(row)])
        for by_index in (True, False):
            scanner = dataset.scanner(
                columns=[work.state.columns[0].name],
                filter=_contains(condition.text),
                use_scalar_index=by_index,
            )
            _check_keys(f"{condition.text} by {index.name if by_index else 'a scan'}", scanner, expected)


def _contains(text: str) -> str:
    name, like, pattern = text.partition(" LIKE ")
    return f"contains({name}, {pattern.replace('%', '')})" if like else text


def _check_text(work: Work, chance: random.Random, dataset: lance.LanceDataset, column: Column) -> None:
    from lance.query import MatchQuery

    word = chance.choice(WORDS).split()[0]
    matching = [row for row in work.state.rows if word in _words(row.get(column.number))]
    scanner = dataset.scanner(
        columns=[work.state.columns[0].name], full_text_query=MatchQuery(word, column.name)
    )
    _check_keys(f"{word!r} in {column.name}", scanner, _keys(work, matching))


def _words(text: Any) -> list[str]:
    return (text or "").lower().split()


def _check_nearest(work: Work, dataset: lance.LanceDataset, column: Column) -> None:
    present = [row for row in work.state.rows if row.get(column.number) is not None]
    if not present:
        return
    # With stable row ids, rows that were deleted before a compaction take places among the nearest.
    query = {"column": column.name, "q": [0.0, 0.0], "k": _MOST_ROWS}
    scanner = dataset.scanner(columns=[work.state.columns[0].name], nearest=query)
    _check_keys(f"nearest in {column.name}", scanner, _keys(work, present))


def _check_keys(what: str, scanner: Any, expected: Rows) -> None:
    found = Counter((plain(key),) for key in scanner.to_table().column(0).to_pylist())
    _check_rows(what, found, expected)


def _keys(work: Work, rows: Sequence[dict[int, Any]]) -> Rows:
    return Counter((row.get(work.state.columns[0].number),) for row in rows)


def _check_rows(what: str, found: Rows, expected: Rows) -> None:
    if found != expected:
        wrong, missing = found - expected, expected - found
        negative = [row for row, count in found.items() if count < 0]
        raise MismatchError(
            f"{what}: too many {dict(wrong)}, missing {dict(missing)}, never there {negative}"
        )


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(row["_change_type"] for row in rows))


def _texts(rows: Sequence[tuple[Any, ...]], position: int) -> set[str]:
    return {str(row[position]) for row in rows if row[position] is not None}


def _all_kept(work: Work, version: int) -> bool:
    """Return whether nothing can be unknown of the changes, also of what a restore has undone."""
    kept = {one["version"] for one in work.table.open().version_refs()}
    return kept.issuperset(range(1, version + 1))
