"""What a catalog runs for, such as a task: identifies writes of its tables, and records reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_provider_lancens.spark.options import WriteIdentity, WriteRequest

if TYPE_CHECKING:
    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.spark.results import WriteResult
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.write_context import WriteContext


Begin: TypeAlias = "Callable[[ResolvedTable, WriteRequest], WriteContext]"
"""Looks up the key of a write, and whether what is found under it is this write."""


def no_digest() -> None:
    """Return None: the rows aren't known before they are written, or there are none, as of a deletion."""


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write that a method of a table is about to make."""

    table: TableId
    identity: WriteIdentity
    """The identity as it was given."""
    commit: Callable[[WriteIdentity, Begin], WriteResult] = field(repr=False)
    """Makes the write under an identity."""
    digest: Callable[[], str | None] = field(default=no_digest, repr=False)
    """Returns a digest of the rows, or of how they are computed; None if it isn't known."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """The conditions of the write by argument, which are part of what it does."""


def numbered_execution_id(execution_id: str, number: int) -> str:
    """Return what a call of an execution shares with the same call in other tries, and with no other call.

    Args:
        execution_id: the execution's.
        number: the number of the call, from 1, among the execution's calls that do the same.
    """
    return execution_id + (f"#{number}" if number > 1 else "")


def includes_computation(made: str, wanted: str) -> bool:
    """Return whether values need not be computed again: their computation is the wanted one, or a later one.

    A later computation of an execution begins with the values of the earlier ones. A retry that made an
    earlier one again would undo the later one.

    Args:
        made: what identifies the computation that made the values.
        wanted: what identifies the computation that is about to be made.
    """
    (execution, number), (other, least) = _execution_and_number(made), _execution_and_number(wanted)
    return execution == other and number >= least


def _execution_and_number(identity: str) -> tuple[str, int]:
    execution, mark, number = identity.rpartition("#")
    return (execution, int(number)) if mark and number.isdecimal() else (identity, 1)


class Execution:
    """An execution outside of a task: identifies a write by the given key alone, and records nothing."""

    def check_given(self, method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Check arguments of a method as they were given."""

    def record_read(self, table: TableId, location: str, *versions: int | None) -> None:
        """Record a read.

        Args:
            table: the table.
            location: where it is, which tells it from others of its name.
            versions: the version that is read, and for changes the version that they follow.
        """

    @property
    def execution_id(self) -> str | None:
        """What the tries of the running task's execution share, and no other; None if there is no task."""
        return None

    @contextmanager
    def computing(
        self,
        table: TableId,  # noqa: ARG002
        column: str,  # noqa: ARG002
        where: str | None,
        what: object,  # noqa: ARG002
    ) -> Iterator[str | None]:
        """Provide what a computation of a column shares with the same one in other tries, for its duration.

        None if it needs nothing of the kind: a single computation of the rows without a value leaves out what
        an earlier try has computed, since these rows have one.

        Args:
            table: the table.
            column: the column.
            where: which rows it computes; None for rows without a value.
            what: differs for another computation of these rows.
        """
        yield None if where is None else self.execution_id

    def begin_range(self, name: str) -> None:
        """Begin a block whose writes belong to a range of changes.

        Args:
            name: what identifies the range: the bookmark, the table that is read, and where the range begins.
        """

    def end_range(self) -> None:
        """End the block that was begun last."""

    def write(self, pending: PendingWrite) -> WriteResult:
        """Make a write, and report it."""
        from airflow_provider_lancens.spark.write.write_context import WriteContext

        return pending.commit(pending.identity, WriteContext.begin)

    def report(self, table: TableId, result: WriteResult) -> None:
        """Report a version that was made by something else than a write of rows, such as a publication."""


class TaskExecution(Execution):
    """A task whose tries share an execution: identifies a write by the given key alone."""

    def __init__(self, execution_id: Callable[[], str]) -> None:
        self._execution_id = execution_id

    @property
    def execution_id(self) -> str | None:
        """See `Execution.execution_id`."""
        return self._execution_id()


NO_TASK = Execution()
