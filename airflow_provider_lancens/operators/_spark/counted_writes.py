"""Writes without a key, identified by their number, and checks that a number still means the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from airflow_provider_lancens.spark.options import WriteRequest
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
    from airflow_provider_lancens.spark.write.write_context import WriteContext


@dataclass(slots=True)
class CountedWrites:
    """A task's writes to a table that have no key: the number of each identifies it.

    A number is a position in the task: if a loop runs over another list, the same number means other rows. So
    a commit found under a number is compared by its fingerprint, and after a mismatch the next writes fail.
    """

    table: str
    made: int = 0
    _first_key: str = ""
    _was_found: bool = False
    _doubt: str | None = None
    _is_compared: bool = False

    def next_key(self, task_key: str) -> str:
        """Return the key of the next write; a failed write that is repeated keeps its key.

        Raises:
            AirflowFailException: an earlier number of this task no longer meant the same rows.
        """
        if self._doubt is not None:
            raise self._refusal(self._doubt)
        key = f"{task_key}/{self.table}"
        return f"{key}/{self.made + 1}" if self.made else key

    def fingerprint(
        self, given: str | None, read: Any, texts: Mapping[str, str], digest: Callable[[], str | None]
    ) -> str:
        """Return the fingerprint of the next write: the given one, or what is known of its rows.

        Args:
            given: the given one.
            read: the versions that the task has read.
            texts: the conditions of the write by argument.
            digest: returns a digest of its rows; None if it isn't known.
        """
        from airflow_provider_lancens.operators._spark.fingerprints import conditions, fingerprint_of

        plan = None if given else digest()
        self._is_compared = bool(given or plan)
        if given:
            return given
        known = [] if plan is None else [{"plan": plan}]
        return fingerprint_of(read, *conditions(texts), *known)

    def begin(self, target: ResolvedTable, request: WriteRequest) -> WriteContext:
        """Begin a write: look up its key, and check whether a commit under it is this write.

        Raises:
            AirflowFailException: it is another write, or that is unknown and the task makes several writes.
            InvalidTableStateError: (19) it cannot be determined whether the key was committed.
        """
        from airflow_provider_lancens import spec_errors
        from airflow_provider_lancens.spark.write.write_context import WriteContext

        try:
            context = WriteContext.begin(target, request)
        except spec_errors.InvalidInputError as error:
            self._doubt = str(error)
            raise self._refusal(self._doubt) from None
        if not self.made:
            self._first_key = request.identity.key or ""
        found = context.earlier or context.repeated
        self._was_found |= found is not None
        if request.identity.on_existing_key == "write_again" and context.earlier is None:
            return context
        if found is None or (self._is_compared and found.fingerprint == context.write.fingerprint):
            return context
        if not self._is_compared and context.write.is_own(found):
            return context  # a retry of the same code
        if context.earlier is None and not self._is_one_of_several(target, request):
            return context  # the task's only write, made again by another execution
        doubt = (
            f"table {self.table}: the task's write number {self.made + 1} was committed before, as version "
            f"{found.version}, and it isn't known whether with the same rows"
        )
        self._doubt = doubt
        if self.made or context.earlier is None:
            raise self._refusal(doubt)
        # The first write may be the only one, which the task itself identifies; the next one is refused.
        return context

    def _is_one_of_several(self, target: ResolvedTable, request: WriteRequest) -> bool:
        """Return whether an earlier execution made further writes, whose numbers mean other rows now."""
        from airflow_provider_lancens.spark.keys import is_used

        return self.made > 0 or is_used(target, f"{request.identity.key}/{self.made + 2}")

    def has_missing_writes(self, namespace: LanceNamespace) -> bool:
        """Return whether an earlier try or execution of the task made more writes than this one.

        Args:
            namespace: the table's namespace, for one listing; not used unless an earlier write was found.
        """
        from airflow_provider_lancens.spark.keys import is_used
        from airflow_provider_lancens.spark.table.resolved_table import resolved_table

        if not self._was_found:
            return False
        with resolved_table(namespace, self.table) as target:
            return is_used(target, f"{self._first_key}/{self.made + 1}")

    def _refusal(self, reason: str) -> AirflowFailException:
        return AirflowFailException(
            f"{reason}; a number doesn't identify the writes of a loop: set the key of each "
            "write to what identifies its rows, such as the file's name and the day"
        )
