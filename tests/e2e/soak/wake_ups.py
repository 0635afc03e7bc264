"""Missed wake-ups: waits and updates of assets compared with the record of commits."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.e2e.soak.commits import Commits


@dataclass
class Wait:
    """A deferred task, and when it was seen to be deferred and to have woken up."""

    run: str
    name: str
    awaited: dict[str, int]
    """Versions by table; the first that is reached ends the wait."""
    state: str | None = None
    armed_at: float | None = None
    woken_at: float | None = None
    deferrals: int = 0

    def note(self, state: str | None, now: float) -> None:
        """Note its state as seen now."""
        if state == "deferred" and self.state != "deferred":
            self.deferrals += 1
            self.armed_at, self.woken_at = now, None
        elif self.state == "deferred" and state != "deferred":
            self.woken_at = now
        self.state = state

    def due(self, commits: Commits) -> float | None:
        """When there was something to wake up for; None if it has to wait longer, or didn't wait."""
        reached = [at for one in self.awaited.items() if (at := commits.reached(*one)) is not None]
        return max(min(reached), self.armed_at) if reached and self.armed_at else None


@dataclass(frozen=True)
class Update:
    """An asset event of a watched table."""

    table: str
    previous_version: int | None
    version: int
    at: float


@dataclass
class Delays:
    """Seconds from a commit to what it caused, and what came too late or not at all."""

    seconds: list[float] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def __add__(self, other: "Delays") -> "Delays":
        return Delays(self.seconds + other.seconds, self.missed + other.missed)

    def add(self, what: str, due: float, came: float | None, now: float, patience: float) -> None:
        """Judge one wake-up."""
        took = (now if came is None else came) - due
        if came is not None:
            self.seconds.append(took)
        if took > patience:
            self.missed.append(f"{what}: {f'after {took:.0f} s' if came else f'not in {took:.0f} s'}")


def delays_of_waits(waits: Iterable[Wait], commits: Commits, now: float, patience: float) -> Delays:
    """Judge each wait whose version was reached.

    Args:
        waits: all waits that were observed.
        commits: all commits, by when a version was there at the latest; a wait may wake up before, since
            maintenance makes versions too.
        now: when the waits were observed for the last time.
        patience: seconds within which a wait must wake up.
    """
    delays = Delays()
    for wait in waits:
        due = wait.due(commits)
        if due is not None:
            delays.add(f"{wait.name} for {wait.awaited}", due, wait.woken_at, now, patience)
    return delays


def delays_of_updates(
    updates: Iterable[Update], commits: Commits, table: str, since: float, now: float, patience: float
) -> Delays:
    """Judge each version of a table that was committed since some time: an update must cover it.

    Args:
        updates: of this table, in order.
        commits: all commits.
        table: the table.
        since: when the table was watched for certain.
        now: when the updates were read.
        patience: seconds within which an update must follow.
    """
    delays, remaining = Delays(), list(updates)
    for version, at in commits.of(table):
        while remaining and remaining[0].version < version:
            remaining.pop(0)
        if at >= since:
            came = remaining[0].at if remaining else None
            delays.add(f"{table} at {version}", at, came, now, patience)
    return delays


def gaps(updates: Sequence[Update]) -> Iterator[str]:
    """Updates that don't continue at the one before: versions between them would never be read."""
    for before, after in pairwise(updates):
        if after.previous_version != before.version:
            yield f"{after.table}: {before.version} is followed by {after.previous_version}, {after.version}"
