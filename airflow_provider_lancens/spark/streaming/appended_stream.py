"""Appended rows of a table as a stream: its offsets, and the fragments that a micro-batch reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.changes.appended_rows import VersionRows
from airflow_provider_lancens.spark.table.column_history import SchemaChange, schema_changes
from airflow_provider_lancens.spark.table.history import is_maintenance, read_transaction, transactions

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.fragment import FragmentMetadata

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Position in the history of a table. Spark keeps it in the checkpoint of a query, as JSON."""

    version: int
    """The version up to which everything was read; with `snapshot`, the version that is being read."""
    fragments: int = 0
    """How many fragments of the next version were read too; with `snapshot`, of `version` itself."""
    snapshot: bool = False
    """Whether all rows of `version` are being read, with which a stream without a start begins."""
    transaction: str | None = field(default=None, compare=False)
    """UUID of the transaction that made `last_version`, by which another table of the same name is
    recognized; None if it isn't known."""

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Parse what `as_dict` returned.

        Raises:
            InvalidInputError: (13) it is something else, such as the offset of another source.
        """
        try:
            return cls(**given)
        except TypeError as error:
            raise spec_errors.InvalidInputError(
                f"expected the offset of a stream of a Lance table in the query's checkpoint, got "
                f"{dict(given)!r}; use another checkpointLocation for this query"
            ) from error

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return asdict(self)

    def to_reach(self, end: Self) -> Self:
        """Return this start of a micro-batch, or if the first one is repeated, the start that it had.

        Spark keeps where a micro-batch ends, but not where the first one started: it asks for that again, and
        the table may have newer versions by then.

        Args:
            end: where the micro-batch ends.
        """
        is_first = self.snapshot and not self.fragments
        if not is_first or self.version <= end.version:
            return self
        transaction = end.transaction if end.last_version == end.version else None
        return type(self)(end.version, snapshot=end.version > 0, transaction=transaction)

    @property
    def last_version(self) -> int:
        """The newest version that was read, in part or whole."""
        return self.version if self.snapshot or not self.fragments else self.version + 1


_BLOCK = 16
"""Number of transactions that are read at once."""
_GROUP_BYTES = 32 * 1024 * 1024
"""Small fragments are read by one task up to this size."""
_OPENING_BYTES = 1024 * 1024
"""What opening a version counts for: a task costs more than a few of these."""
_COLUMN_CHANGES = frozenset({"Project", "Merge"})
"""Operations that add, rename, convert or drop columns: rows that were read aren't read again for that."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Fragments of one version that belong to the stream."""

    version: int
    is_snapshot: bool
    fragments: Sequence[FragmentMetadata]
    uuid: str | None
    """The UUID of the transaction that made the version."""
    transaction: Transaction | None = None
    """The transaction of a version that isn't a snapshot."""

    def after(self, count: int) -> StreamOffset:
        """Return the offset when this many of the fragments were read."""
        if self.is_snapshot:
            return StreamOffset(self.version, count, snapshot=True, transaction=self.uuid)
        return StreamOffset(self.version - 1, count, transaction=self.uuid)

    @property
    def end(self) -> StreamOffset:
        """The offset when all fragments were read."""
        return StreamOffset(self.version, transaction=self.uuid)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What a micro-batch reads."""

    groups: Sequence[Sequence[VersionRows]]
    """The rows to read, by task."""
    first: int
    """The first version that is read."""
    after: int
    last: int
    """The last version whose transaction was read; all after `after` were."""
    changes: Sequence[SchemaChange] | None
    """The changes of columns in these versions; None if one was cleaned up meanwhile."""

    @property
    def versions(self) -> set[int]:
        """The versions with rows to read."""
        return {part.version for group in self.groups for part in group}


class AppendedStream:
    """The appended rows of a table, from an offset on.

    Args:
        target: the table.
        skip_change_commits: whether versions that changed rows in another way are passed over, rather than
            refused.
    """

    def __init__(self, target: ResolvedTable, skip_change_commits: bool = False) -> None:
        self.target = target
        self.skip_change_commits = skip_change_commits
        self._verified: dict[str, Any] | None = None
        """The start of the micro-batch that was planned last."""
        self._caught_up: dict[str, Any] | None = None
        """The start after which there was no version when it was compared with the table."""

    def start(self, after_version: int | None) -> StreamOffset:
        """Return the offset to begin at.

        Args:
            after_version: the version whose rows are known; None begins with all rows of the newest one.

        Raises:
            InvalidInputError: (13) there is no such version yet.
        """
        newest = self.target.latest_version() or 0
        if after_version is None:
            return replace(self.end_at(newest), snapshot=newest > 0)
        if after_version > newest:
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: after_version: expected at most {newest}, which is the newest "
                f"version, got {after_version}"
            )
        return self.end_at(after_version)

    def end_at(self, version: int) -> StreamOffset:
        """Return the offset when all rows up to a version were read."""
        latest = self.target.open_latest() if version else None
        return StreamOffset(version, transaction=None if latest is None else _uuid(latest, version))

    def advance(self, start: StreamOffset, newest: int, max_rows: int | None = None) -> StreamOffset:
        """Return the end of a micro-batch.

        Args:
            start: where it begins.
            newest: the last version to read.
            max_rows: maximum number of rows, unless the first fragment alone has more; None reads all.

        Raises:
            TableVersionNotFoundError: (11) a version that was not read yet was cleaned up.
            InvalidInputError: (13) a version changed rows in another way than by an append.
            InvalidTableStateError: (19) the table was replaced by another one of the same name.
        """
        end, rows, first = start, 0, start.fragments
        for step in self._steps(start, newest):
            for count, fragment in enumerate(step.fragments[first:], first + 1):
                added = fragment.physical_rows or 0
                if max_rows is not None and rows and rows + added > max_rows:
                    return end
                end, rows = step.after(count), rows + added
            end, first = step.end, 0
        return end

    def batch(self, start: StreamOffset, end: StreamOffset) -> MicroBatch:
        """Return what a micro-batch reads.

        Args:
            start: where it begins.
            end: where it ends, as `advance` returned it.

        Raises:
            TableVersionNotFoundError: (11) a version was cleaned up.
            InvalidTableStateError: (19) the table was replaced by another one of the same name.
        """
        start = start.to_reach(end)
        steps = list(self._between(start, end))
        commits = [(step.version, step.transaction) for step, _ in steps if not step.is_snapshot]
        last = max([start.version, *(step.version for step, _ in steps)])
        changes = schema_changes(self.target.open, commits[::-1])
        first = start.version if start.snapshot else start.version + 1
        return MicroBatch(_grouped(steps), first, start.version, last, changes)

    def _between(
        self, start: StreamOffset, end: StreamOffset
    ) -> Iterator[tuple[_Step, Sequence[FragmentMetadata]]]:
        if start.last_version == end.last_version and start.transaction is not None:
            self._check_same(start, end.transaction)
        first = start.fragments
        for step in self._steps(start, end.last_version):
            if step.version == end.last_version and end.transaction is not None:
                self._check_same(end, step.uuid)
            is_part = end.fragments and step.after(0) == StreamOffset(end.version, 0, end.snapshot)
            yield step, step.fragments[first : end.fragments if is_part else None]
            if is_part:
                return
            first = 0

    def _steps(self, start: StreamOffset, newest: int) -> Iterator[_Step]:
        if newest < start.last_version:
            raise self._replaced(f"its newest version is {newest}, not {start.last_version}")
        if start.snapshot:
            self._check_kept(start.version)
            dataset = self.target.open(start.version)
            self._verify(start, dataset)
            yield _Step(start.version, True, _metadata(dataset), start.transaction)
        if newest > start.version:
            yield from self._commits(start, self._opened(newest))
        elif not start.snapshot:
            self._verify_caught_up(start)

    def _opened(self, version: int) -> LanceDataset:
        try:
            return self.target.open(version)
        except ValueError:
            newest = self.target.latest_version() or 0
            if newest < version:
                raise self._replaced(f"its newest version is {newest}, not {version}") from None
            self._check_kept(version)
            raise

    def _commits(self, start: StreamOffset, latest: LanceDataset) -> Iterator[_Step]:
        if not start.snapshot:
            self._verify(start, latest)
        newest = latest.version
        for after in range(start.version, newest, _BLOCK):
            block = transactions(latest, after, min(after + _BLOCK, newest))
            for version, transaction in reversed(list(block)):
                yield self._step(version, transaction)

    def _step(self, version: int, transaction: Transaction | None) -> _Step:
        if transaction is None:
            raise self._cleaned_up(version)
        fragments = self._appended(version, transaction)
        return _Step(version, False, fragments, transaction.uuid or None, transaction)

    def _verify(self, start: StreamOffset, dataset: LanceDataset) -> None:
        """Check, once for the micro-batch that starts there, that the table hasn't been replaced."""
        if start.transaction is None or start.as_dict() == self._verified:
            return
        self._check_same(start, _uuid(dataset, start.last_version))
        self._verified = start.as_dict()

    def _verify_caught_up(self, start: StreamOffset) -> None:
        """Check the same once for a start without newer versions: another table may have as many versions.

        It is checked again once there are newer versions, since the table may have been replaced meanwhile.
        """
        if start.transaction is None or start.as_dict() == self._caught_up:
            return
        self._check_same(start, _uuid(self._opened(start.version), start.version))
        self._caught_up = start.as_dict()

    def _check_same(self, offset: StreamOffset, found: str | None) -> None:
        if found not in (None, offset.transaction):
            raise self._replaced(f"its version {offset.last_version} isn't the version that was read")

    def _replaced(self, difference: str) -> spec_errors.InvalidTableStateError:
        return spec_errors.InvalidTableStateError(
            f"table {self.target.id}: {difference}: the table was dropped and created again, "
            "or set back by another client; start the query with another checkpointLocation"
        )

    def _check_kept(self, version: int) -> None:
        try:
            self.target.check_version(version)
        except spec_errors.TableVersionNotFoundError as error:
            raise self._cleaned_up(version) from error

    def _appended(self, version: int, transaction: Transaction) -> Sequence[FragmentMetadata]:
        operation: Any = transaction.operation
        kind = type(operation).__name__
        if kind == "Append" or (kind == "Overwrite" and version == 1):
            return list(operation.fragments)
        if not (kind in _COLUMN_CHANGES or is_maintenance(transaction) or self.skip_change_commits):
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: version {version} isn't an append ({kind}), and a stream has only "
                "appended rows; pass over other versions with the option skip_change_commits=true, or read "
                "all changes with Table.changes"
            )
        return []

    def _cleaned_up(self, version: int) -> spec_errors.TableVersionNotFoundError:
        return spec_errors.TableVersionNotFoundError(
            f"table {self.target.id}: version {version} was cleaned up before the query had read it; keep "
            "versions for longer than the stream is behind. To go on, start a query with another checkpoint "
            "and the option after_version"
        )


def _grouped(steps: Iterable[tuple[_Step, Sequence[FragmentMetadata]]]) -> list[list[VersionRows]]:
    groups: list[dict[int, set[str]]] = []
    room = 0
    for step, fragments in steps:
        for fragment in fragments:
            size = _OPENING_BYTES + sum(file.file_size_bytes or _GROUP_BYTES for file in fragment.files)
            if not groups or size > room:
                groups.append({})
                room = _GROUP_BYTES
            groups[-1].setdefault(step.version, set()).update(file.path for file in fragment.files)
            room -= size
    return [[VersionRows(version, frozenset(paths)) for version, paths in group.items()] for group in groups]


def _uuid(dataset: LanceDataset, version: int) -> str | None:
    """Return the UUID of the transaction that made a version; None if it isn't known."""
    found = read_transaction(dataset, version)
    return None if found is None else found.uuid or None


def _metadata(dataset: LanceDataset) -> list[FragmentMetadata]:
    return [fragment.metadata for fragment in dataset.get_fragments()]
