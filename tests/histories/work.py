"""What the steps of a history share: the table, its model, what is staged, and what was called."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.histories.model import Column, Model, Row, Rows, State, as_arrow
from tests.histories.table import Table
from tests.histories.values import key, row


@dataclass(frozen=True)
class Staged:
    """What a staged version does when it is published."""

    base: State
    """What it was staged onto."""
    apply: Callable[[State], State]
    matters: Callable[[Row], bool] | None = None
    """The rows of `base` that must still be the same; None if others may change all."""

    deletions_matter: bool = True
    """Whether it conflicts with deletions of such rows, too."""

    def conflicts(self, state: State) -> bool:
        """Return whether others have written or deleted such rows since."""
        before, now = self._rows(self.base), self._rows(state)
        return bool(now - before or (self.deletions_matter and before - now))

    def _rows(self, state: State) -> Rows:
        return state.with_rows(row for row in state.rows if self.matters and self.matters(row)).counted()


@dataclass
class Work:
    """One history."""

    table: Table
    stable: bool
    """Whether the table has stable row ids."""
    model: Model = field(default_factory=Model)
    staged: dict[int, Staged] = field(default_factory=dict)
    """The staged versions that were neither published nor discarded."""
    releases: list[tuple[int, int]] = field(default_factory=list)
    """The versions of the release set that keep a version of the table, each with that one."""
    script: list[str] = field(default_factory=list)
    """What was called."""
    _keys: int = 0

    @property
    def state(self) -> State:
        """The newest version of the model."""
        return self.model.state

    def note(self, call: str, /, *arguments: Any, **named: Any) -> None:
        """Take down a call."""
        given = [repr(one) for one in arguments] + [f"{name}={one!r}" for name, one in named.items()]
        self.script.append(f"{call}({', '.join(given)})")

    def rows(self, chance: random.Random, columns: Sequence[Column], most: int = 8) -> tuple[Row, ...]:
        """Return rows with new keys."""
        count = chance.randint(1, most)
        self._keys += count
        numbers = range(self._keys, self._keys - count, -1)
        return tuple(row(chance, columns, key(columns[0].type, number)) for number in numbers)

    def rows_of_keys(self, chance: random.Random, columns: Sequence[Column]) -> tuple[Row, ...]:
        """Return rows with different keys, of which the table has some."""
        number = columns[0].number
        known = sorted({one[number] for one in self.state.rows if one.get(number) is not None})
        chosen = chance.sample(known, min(len(known), chance.randint(0, 4)))
        new = self.rows(chance, columns, 3) if chance.random() < 0.7 or not chosen else ()
        return (*(row(chance, columns, one) for one in chosen), *new)

    def arrow(self, rows: Sequence[Row], columns: Sequence[Column]) -> pa.Table:
        """Return rows with their columns, and take them down."""
        made = as_arrow(rows, columns)
        self.script.append(f"rows = pa.Table.from_pylist({made.to_pylist()!r}, schema={_schema(made)})")
        return made

    def known_versions(self) -> list[int]:
        """Return the versions that are kept and known, oldest first."""
        kept = {one["version"] for one in self.table.open().version_refs()}
        return sorted(kept & self.model.states.keys())


def _schema(table: pa.Table) -> str:
    return "{" + ", ".join(f"{one.name!r}: {one.type}" for one in table.schema) + "}"
