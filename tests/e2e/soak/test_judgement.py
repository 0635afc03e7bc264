"""What the soak finds: each kind of fault in made-up observations, and nothing in sound ones."""

from collections.abc import Sequence

import pytest

from tests.e2e.soak.commits import Commits
from tests.e2e.soak.growth import Sample, growths
from tests.e2e.soak.wake_ups import Update, Wait, delays_of_updates, delays_of_waits, gaps

TABLE = "soak$t"
PATIENCE = 30


@pytest.fixture
def commits() -> Commits:
    """Version 1 after 10 seconds, version 2 after 20, and so on; version 5 is another writer's."""
    commits = Commits()
    for version in (1, 2, 3, 4, 6):
        commits.add(TABLE, version, 10.0 * version)
    return commits


def wait_for(version: int, states: Sequence[tuple[str, float]]) -> Wait:
    wait = Wait("run", "wait", {TABLE: version})
    for state, at in states:
        wait.note(state, at)
    return wait


@pytest.mark.parametrize(
    ("version", "states"),
    [
        (3, [("deferred", 5), ("running", 60)]),
        (3, [("deferred", 5), ("running", 20)]),  # maintenance made it version 3 before the commit did
        (3, [("deferred", 40), ("running", 70)]),
        (3, [("running", 35), ("success", 40)]),
        (7, [("deferred", 5)]),
    ],
    ids=["soon", "early", "soon after it was deferred", "not deferred", "not reached"],
)
def test_a_wait_in_time_is_not_missed(
    commits: Commits, version: int, states: Sequence[tuple[str, float]]
) -> None:
    assert delays_of_waits([wait_for(version, states)], commits, 1000, PATIENCE).missed == []


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ([("deferred", 5), ("running", 61)], "after 31 s"),
        ([("deferred", 5)], "not in 970 s"),
        ([("deferred", 5), ("running", 31), ("deferred", 35)], "not in 965 s"),
    ],
    ids=["late", "never", "deferred again"],
)
def test_a_late_wait_is_missed(commits: Commits, states: Sequence[tuple[str, float]], found: str) -> None:
    delays = delays_of_waits([wait_for(3, states)], commits, 1000, PATIENCE)

    assert delays.missed == [f"wait for {{'{TABLE}': 3}}: {found}"]


def test_an_update_covers_all_versions_up_to_its_own(commits: Commits) -> None:
    updates = [Update(TABLE, None, 2, 25), Update(TABLE, 2, 6, 62)]

    delays = delays_of_updates(updates, commits, TABLE, 0, 1000, PATIENCE)

    assert delays.seconds == [15, 5, 32, 22, 2]
    assert delays.missed == [f"{TABLE} at 3: after 32 s"]
    assert list(gaps(updates)) == []


def test_versions_without_an_update_are_missed(commits: Commits) -> None:
    updates = [Update(TABLE, None, 2, 25), Update(TABLE, 3, 4, 45)]

    delays = delays_of_updates(updates, commits, TABLE, 0, 1000, PATIENCE)

    assert delays.missed == [f"{TABLE} at 6: not in 940 s"]
    assert list(gaps(updates)) == [f"{TABLE}: 2 is followed by 3, 4"]


@pytest.mark.parametrize(
    ("memory", "files", "excessive"),
    [
        (lambda seconds: 100, lambda seconds: 20, []),
        (lambda seconds: min(seconds, 600), lambda seconds: seconds % 3, []),
        (lambda seconds: 100 + seconds / 100, lambda seconds: 20, ["memory"]),
        (lambda seconds: 100, lambda seconds: 20 + seconds // 300, ["files"]),
    ],
    ids=["constant", "only in the beginning", "leaked memory", "leaked files"],
)
def test_growth_after_the_warm_up_is_found(memory, files, excessive) -> None:  # type: ignore[no-untyped-def]
    samples = [Sample(s, memory(s), files(s), 5, 2) for s in range(0, 3600, 10)]

    found = [one.metric for one in growths("triggerer", samples, 600, 600) if one.is_excessive]

    assert found == excessive
