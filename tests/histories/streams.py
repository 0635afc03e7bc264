"""Streams of the table of a history: micro-batches as Spark's driver makes them, in this process.

A query is stopped at any point, and goes on by its checkpoint. Each appended row has to be read once.
"""

import pickle
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from lance_namespace import DeclareTableRequest, DropTableRequest
from lance_namespace.errors import LanceNamespaceError
from pyspark import cloudpickle

from airflow_provider_lancens.spark import NamespaceSpec, lance_data_source
from airflow_provider_lancens.spark.datasource import stream_source
from airflow_provider_lancens.spark.streaming.appended_stream import StreamOffset
from tests.histories.checks import MismatchError
from tests.histories.model import Column, Model, Row, Rows, State, counted, plain
from tests.histories.work import Work

Offset = dict[str, Any]

_UNCHANGED = frozenset({"Append", "Project", "Merge", "Rewrite", "CreateIndex", "UpdateConfig"})
"""Operations that a stream passes, of which the first alone has rows of it."""


@dataclass
class Appends:
    """What the versions of a table appended."""

    operations: dict[int, str | None] = field(default_factory=dict)
    """By version; None if it was cleaned up before it was looked at."""
    rows: dict[int, tuple[Row, ...] | None] = field(default_factory=dict)
    """The rows of each append; None if it can't be told which of several had them."""
    keys: dict[int, int] = field(default_factory=dict)
    """The number of the key column in each version with rows."""

    def note(self, work: Work, before: int, state: State | None) -> None:
        """Note what a step has appended.

        Args:
            work: the history, after the step.
            before: the version before the step; 0 if there was none.
            state: what the table was then.
        """
        versions = range(before + 1, work.model.newest + 1)
        self.operations |= {version: _operation(work, version) for version in versions}
        appends = [one for one in versions if self.operations[one] == "Append" or one == 1]
        new = _new_rows(work.state, state) if len(appends) == 1 else None
        for version in appends:
            self.rows[version], self.keys[version] = new, work.state.columns[0].number

    def between(self, after: int, version: int) -> list[int]:
        """Return the versions with rows of a stream."""
        return [one for one in range(after + 1, version + 1) if one in self.rows]

    def are_known(self, after: int, version: int) -> bool:
        """Return whether it is known what the versions appended."""
        operations = [self.operations.get(one) for one in range(after + 1, version + 1)]
        return None not in operations and all(
            self.rows[one] is not None for one in self.between(after, version)
        )


def _operation(work: Work, version: int) -> str | None:
    try:
        transaction = work.table.open(version).read_transaction(version)
    except TypeError:
        return "Rewrite"  # with indices, which pylance can't read
    except (OSError, ValueError):
        return None
    return None if transaction is None else type(transaction.operation).__name__


def _new_rows(state: State, before: State | None) -> tuple[Row, ...]:
    known = Counter() if before is None else before.counted(state.columns)
    new = []
    for row in state.rows:
        values = tuple(plain(row.get(one.number)) for one in state.columns)
        if known[values]:
            known[values] -= 1
        else:
            new.append(row)
    return tuple(new)


@dataclass
class Query:
    """A query, with what Spark keeps in its checkpoint, and the rows that it has read."""

    work: Work
    appends: Appends
    spec: NamespaceSpec
    options: dict[str, str]
    skips: bool
    """Whether it passes over versions that changed rows."""
    is_of_former_table: bool = False
    """Whether its checkpoint is of a table that was dropped since."""
    offsets: list[Offset] = field(default_factory=list)
    """Where each micro-batch ends that was planned."""
    done: int = 0
    """How many of them are done."""
    reader: Any = None
    first: Offset | None = None
    """Where it began."""
    read: dict[int, Rows] = field(default_factory=dict)
    """The keys of the rows of each micro-batch."""
    frame: tuple[bytes, Any, list[Column], int] | None = None
    """The DataFrame: the data source as Spark keeps it, its schema, the columns and their version."""

    @classmethod
    def draw(cls, work: Work, appends: Appends, spec: NamespaceSpec, chance: random.Random) -> "Query":
        """Return a query with any options."""
        options, skips = {"table": work.table.id}, chance.random() < 0.6
        if chance.random() < 0.5:
            options["after_version"] = str(chance.randint(0, work.model.newest))
        if chance.random() < 0.5:
            options["max_rows_per_batch"] = str(chance.choice((1, 4, 10)))
        if skips:
            options["skip_change_commits"] = "true"
        return cls(work, appends, spec, options, skips)

    def run(self, chance: random.Random) -> str:
        """Run some micro-batches; return how it ended.

        Raises:
            MismatchError: it has read other rows than were appended.
            LanceNamespaceError: it was refused without a reason.
        """
        position = self.offsets[self.done - 1] if self.done else None
        try:
            with patch.object(stream_source, "_POLL_SECONDS", 0.0):
                return self._run(chance, position)
        except LanceNamespaceError as error:
            self.stop()
            if not self._is_due(error):
                raise
            return f"refused ({int(error.code)})"

    def stop(self) -> None:
        """End the process of the driver."""
        if self.reader is not None:
            self.reader.stop()
        self.reader = None

    def _run(self, chance: random.Random, position: Offset | None) -> str:
        newest = self.work.model.newest
        position = self._begin(chance, position)
        for _ in range(chance.choice((1, 3, 100))):
            end = self._planned(position)
            if end is None:
                self._check_end(position, newest)
                if self.reader._last is not None or chance.random() < 0.4:
                    self.stop()
                return "ended"
            if self._is_killed(chance):
                return "killed before a micro-batch"
            self._read(position, end)
            if self._is_killed(chance):
                return "killed after a micro-batch"
            position, self.done = end, self.done + 1
        return "not yet at the end"

    def _begin(self, chance: random.Random, position: Offset | None) -> Offset:
        """Start the query unless it runs; return its position."""
        if self.reader is None:
            self._start(chance)
            if chance.random() < 0.5:
                self.reader.prepareForTriggerAvailableNow()
        if position is None:
            position = self.reader.initialOffset()
            self.first = self.first or position
        return position

    def _planned(self, position: Offset) -> Offset | None:
        """Return the end of the next micro-batch; None if there are no more rows."""
        if len(self.offsets) == self.done:
            end = self.reader.latestOffset(position, self.reader.getDefaultReadLimit())
            if end == position:
                return None
            self.offsets.append(end)
        return self.offsets[self.done]

    def _check_end(self, position: Offset, newest: int) -> None:
        """Check that nothing is left to read."""
        if self.is_of_former_table:
            raise MismatchError(f"a stream of the former table ended at {position} without an error")
        if self.reader._last is not None:
            newest = self.reader._last
        if StreamOffset.parse(position) != StreamOffset(newest):
            raise MismatchError(f"a stream ended at {position} of {newest} versions")
        self._check_all(position)

    def _is_killed(self, chance: random.Random) -> bool:
        killed = chance.random() < 0.12
        if killed:
            self.stop()
        return killed

    def _start(self, chance: random.Random) -> None:
        if self.frame is None or chance.random() < 0.5:
            options, columns = dict(self.options), list(self.work.state.columns)
            if chance.random() < 0.3:
                columns = [columns[0], *chance.sample(columns[1:], chance.randrange(len(columns)))]
                options["columns"] = ",".join(one.name for one in columns)
            source = lance_data_source(self.spec)(options)
            schema = source.schema()
            self.frame = cloudpickle.dumps(source), schema, columns, self.work.model.newest
        self.reader = cloudpickle.loads(self.frame[0]).streamReader(self.frame[1])

    def _read(self, start: Offset, end: Offset) -> None:
        if self.is_of_former_table:
            self.reader.partitions(start, end)
            raise MismatchError(f"a stream of the former table reads {start} to {end}")
        assert self.frame is not None
        columns = self.frame[2]
        executor, names = pickle.loads(pickle.dumps(self.reader)), [one.name for one in columns]
        parts = [pickle.loads(pickle.dumps(one)) for one in self.reader.partitions(start, end)]
        rows = [row for one in parts for batch in executor.read(one) for row in batch.to_pylist()]
        self._check(start, end, counted(rows, names), columns)
        keys = counted(rows, names[:1])
        if self.read.setdefault(self.done, keys) != keys:
            raise MismatchError(f"{start} to {end} is repeated with {keys}, not {self.read[self.done]}")

    def _check(self, start: Offset, end: Offset, found: Rows, columns: list[Column]) -> None:
        """Check the rows of a micro-batch, of which a limit may leave out some."""
        last, begin = StreamOffset.parse(end), StreamOffset.parse(start).to_reach(StreamOffset.parse(end))
        if not self.appends.are_known(begin.version, last.last_version):
            return
        numbers = self.appends.between(begin.version, last.last_version)
        rows = [row for one in numbers for row in self.appends.rows[one] or ()]
        if begin.snapshot:
            if begin.version not in self.work.model.states:
                return
            rows += self.work.model.states[begin.version].rows
        expected = State(tuple(columns), tuple(rows)).counted()
        too_many, missing = found - expected, expected - found
        if too_many or (missing and not begin.fragments and not last.fragments):
            raise MismatchError(f"{start} to {end}: too many {dict(too_many)}, missing {dict(missing)}")

    def _check_all(self, position: Offset) -> None:
        """Check the keys of all rows since the query began."""
        assert self.first is not None
        after, states = self.first["version"], self.work.model.states
        if not self.appends.are_known(after, position["version"]) or (
            self.first["snapshot"] and after not in states
        ):
            return
        found: Rows = sum((self.read[one] for one in range(self.done)), Counter())
        expected: Rows = Counter(
            (plain(row.get(self.appends.keys[one])),)
            for one in self.appends.between(after, position["version"])
            for row in self.appends.rows[one] or ()
        )
        if self.first["snapshot"]:
            expected += Counter(
                (plain(row.get(states[after].columns[0].number)),) for row in states[after].rows
            )
        if found != expected:
            raise MismatchError(
                f"{self.first} to {position}: too many {dict(found - expected)}, "
                f"missing {dict(expected - found)}"
            )

    def _is_due(self, error: LanceNamespaceError) -> bool:
        """Return whether there is a reason for an error."""
        if self.is_of_former_table:
            return True
        code, newest = int(error.code), self.work.model.newest
        kept = {one["version"] for one in self.work.table.open().version_refs()}
        begin = self.offsets[self.done - 1] if self.done else (self.offsets or [None])[0] or self.first
        first = int(self.options.get("after_version", newest)) if begin is None else begin["version"]
        loaded = newest if self.frame is None else self.frame[3]
        if code == 13 and "isn't an append" in str(error):
            version = int(str(error).partition("version ")[2].partition(" ")[0])
            return not self.skips and version > first and self.appends.operations[version] not in _UNCHANGED
        since = min(first, loaded)
        if "Restore" in [self.appends.operations.get(one) for one in range(since + 1, newest + 1)]:
            since = 0  # the columns of a restored version are followed, too
        gone = not kept.issuperset(range(max(1, since), newest + 1))
        return (code == 11 and gone) or (code == 12 and loaded not in kept)


def declare_again(work: Work) -> None:
    """Drop the table, and declare another one in its place, which has no version yet."""
    table = work.table
    work.note("drop_table, declare_table", table.id)
    table.namespace.drop_table(DropTableRequest(id=table.parts))
    properties = {"managed_by": "impl"} if table.on_metastore else None
    table.namespace.declare_table(DeclareTableRequest(id=table.parts, properties=properties))
    table.managed, table._location = table.on_metastore, None
    work.model, work.staged, work.releases = Model(), {}, []
