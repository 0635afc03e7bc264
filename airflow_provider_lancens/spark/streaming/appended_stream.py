"""The rows that a table gains, as a stream: which fragments a micro-batch reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.changes.appended_rows import VersionRows
from airflow_provider_lancens.spark.streaming.stream_offset import StreamOffset
from airflow_provider_lancens.spark.table.history import is_maintenance, transactions

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.fragment import FragmentMetadata

    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

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

    def after(self, count: int) -> StreamOffset:
        """Return the offset when this many of the fragments were read."""
        if self.is_snapshot:
            return StreamOffset(self.version, count, snapshot=True)
        return StreamOffset(self.version - 1, count)


@dataclass(frozen=True, slots=True)
class AppendedStream:
    """The appended rows of a table, from an offset on."""

    target: ResolvedTable
    skip_change_commits: bool = False
    """Whether versions that changed rows in another way are passed over, rather than refused."""

    def start(self, after_version: int | None) -> StreamOffset:
        """Return the offset to begin at.

        Args:
            after_version: the version whose rows are known; None begins with all rows of the newest one.

        Raises:
            InvalidInputError: (13) there is no such version yet.
        """
        newest = self.target.latest_version() or 0
        if after_version is None:
            return StreamOffset(newest, snapshot=newest > 0)
        if after_version > newest:
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: after_version: expected at most {newest}, which is the newest "
                f"version, got {after_version}"
            )
        return StreamOffset(after_version)

    def advance(self, start: StreamOffset, newest: int, max_rows: int | None = None) -> StreamOffset:
        """Return the end of a micro-batch.

        Args:
            start: where it begins.
            newest: the last version to read.
            max_rows: maximum number of rows, unless the first fragment alone has more; None reads all.

        Raises:
            TableVersionNotFoundError: (11) a version that was not read yet was cleaned up.
            InvalidInputError: (13) a version changed rows in another way than by an append.
        """
        end, rows, first = start, 0, start.fragments
        for step in self._steps(start, newest):
            for count, fragment in enumerate(step.fragments[first:], first + 1):
                added = fragment.physical_rows or 0
                if max_rows is not None and rows and rows + added > max_rows:
                    return end
                end, rows = step.after(count), rows + added
            end, first = StreamOffset(step.version), 0
        return end

    def groups(self, start: StreamOffset, end: StreamOffset) -> list[list[VersionRows]]:
        """Return what each task of a micro-batch reads.

        Args:
            start: where it begins.
            end: where it ends, as `advance` returned it.

        Raises:
            TableVersionNotFoundError: (11) a version was cleaned up.
        """
        groups: list[dict[int, set[str]]] = []
        room = 0
        for version, fragment in self._between(start, end):
            size = _OPENING_BYTES + sum(file.file_size_bytes or _GROUP_BYTES for file in fragment.files)
            if not groups or size > room:
                groups.append({})
                room = _GROUP_BYTES
            groups[-1].setdefault(version, set()).update(file.path for file in fragment.files)
            room -= size
        return [[VersionRows(one, frozenset(paths)) for one, paths in group.items()] for group in groups]

    def _between(self, start: StreamOffset, end: StreamOffset) -> Iterator[tuple[int, FragmentMetadata]]:
        first = start.fragments
        for step in self._steps(start, end.last_version):
            is_part = end.fragments and step.after(0) == StreamOffset(end.version, 0, end.snapshot)
            for fragment in step.fragments[first : end.fragments if is_part else None]:
                yield step.version, fragment
            if is_part:
                return
            first = 0

    def _steps(self, start: StreamOffset, newest: int) -> Iterator[_Step]:
        if start.snapshot:
            self._check_kept(start.version)
            yield _Step(start.version, True, _metadata(self.target.open(start.version)))
        if newest <= start.version:
            return
        latest = self.target.open(newest)
        for after in range(start.version, newest, _BLOCK):
            block = transactions(latest, after, min(after + _BLOCK, newest))
            for version, transaction in reversed(list(block)):
                yield _Step(version, False, self._appended(version, transaction))

    def _check_kept(self, version: int) -> None:
        try:
            self.target.check_version(version)
        except spec_errors.TableVersionNotFoundError as error:
            raise self._cleaned_up(version) from error

    def _appended(self, version: int, transaction: Transaction | None) -> Sequence[FragmentMetadata]:
        if transaction is None:
            raise self._cleaned_up(version)
        operation: Any = transaction.operation
        kind = type(operation).__name__
        if kind == "Append" or (kind == "Overwrite" and version == 1):
            return list(operation.fragments)
        if not (kind in _COLUMN_CHANGES or is_maintenance(transaction) or self.skip_change_commits):
            raise spec_errors.InvalidInputError(
                f"table {self.target.id}: version {version} isn't an append ({kind}), and a stream has only "
                "appended rows; pass over other versions with the option skip_change_commits=true, or read "
                "all changes with read_changes"
            )
        return []

    def _cleaned_up(self, version: int) -> spec_errors.TableVersionNotFoundError:
        return spec_errors.TableVersionNotFoundError(
            f"table {self.target.id}: version {version} was cleaned up before the stream had read it; keep "
            "versions for longer than the stream is behind. To go on, start a query with another checkpoint "
            "and the option after_version"
        )


def _metadata(dataset: LanceDataset) -> list[FragmentMetadata]:
    return [fragment.metadata for fragment in dataset.get_fragments()]
