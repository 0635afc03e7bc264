"""Tables that a function of a write reads, and whether it has read their changes.

That decides the write's default key: rows that are computed from changes belong to the range that was read,
since a later execution reads other changes. Rows of a whole version are computed again, and replace earlier
ones. Which of the two a function reads is known once it has been called; before, every key is a candidate.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.execution import Execution

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog

Reading: TypeAlias = frozenset[str]
"""The inputs of which a function has read the changes, by name."""
WHOLE: Reading = frozenset()
"""No changes were read."""
_MOST_RANGES = 6
"""So that at most 64 keys are looked up."""


@dataclass(frozen=True, slots=True)
class FunctionInput:
    """A table at a version; serializable, since a job passes it to its driver."""

    table: str
    version: int
    previous_version: int | None = None
    """The version that `changes` follow; 0 if all rows are changes, None if the input doesn't say."""
    location: str | None = None
    """Where the table was that has the version; None if the input doesn't say."""

    def as_result(self) -> dict[str, Any]:
        """Return it as a result that `LanceCatalog.table` opens."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class FunctionInputs:
    """The inputs of a function."""

    tables: Mapping[str, FunctionInput] = field(default_factory=dict)
    """The inputs by the names of the function's parameters."""

    @classmethod
    def parse(cls, plain: Mapping[str, Sequence[Any]]) -> Self:
        """Parse inputs as `plain` returns them."""
        return cls({name: FunctionInput(*fields) for name, fields in plain.items()})

    def plain(self) -> dict[str, tuple[Any, ...]]:
        """Return the fields of each, as JSON can hold them."""
        return {name: astuple(table) for name, table in self.tables.items()}

    def readings(self) -> list[Reading]:
        """Return all readings that a function can do, `WHOLE` first.

        Raises:
            InvalidInputError: (13) there are too many, since each has a key to look up.
        """
        since = [name for name, table in self.tables.items() if table.previous_version is not None]
        if len(since) > _MOST_RANGES:
            raise spec_errors.InvalidInputError(
                f"inputs: {', '.join(map(repr, since))} have a 'previous_version'; the default key has where "
                f"the changes begin that are read, of at most {_MOST_RANGES} inputs. Set key, or pass those "
                'of which whole versions are read without it: {"table": ..., "version": ...}'
            )
        sizes = range(len(since) + 1)
        return [frozenset(names) for size in sizes for names in itertools.combinations(since, size)]

    def ranges(self, reading: Reading) -> list[str]:
        """Return the start of each range of changes that was read, as parts of a key."""
        changed = {
            (table.table, table.previous_version) for name, table in self.tables.items() if name in reading
        }
        return sorted(f"changes@{table}/{previous}" for table, previous in changed)

    def identity(self, reading: Reading) -> dict[str, tuple[Any, ...]]:
        """Return what decides the rows that a reading reads, for a fingerprint."""
        return {name: _identity(table, reads_changes=name in reading) for name, table in self.tables.items()}

    def call(
        self,
        function: Callable[..., Any],
        spark: SparkSession,
        catalog: Callable[[Execution], LanceCatalog],
        kwargs: Mapping[str, Any],
    ) -> tuple[Any, Reading]:
        """Call a function with its tables; return its result, and its reads.

        Args:
            function: called as ``function(spark, **tables, **kwargs)``.
            spark: the session.
            catalog: returns the catalog of the tables, for the given execution.
            kwargs: further arguments of the function.
        """
        reads = _Reads(self)
        lake = catalog(reads)
        tables = {name: lake.table(table.as_result()) for name, table in self.tables.items()}
        returned = function(spark, **tables, **kwargs)
        return returned, frozenset(reads.changed)


def _identity(table: FunctionInput, *, reads_changes: bool) -> tuple[Any, ...]:
    since = (table.previous_version,) if reads_changes else ()
    place = () if table.location is None else (table.location,)
    return (table.table, table.version, *since, *place)


class _Reads(Execution):
    """Records of which inputs the changes were read, whose range is fixed."""

    def __init__(self, inputs: FunctionInputs) -> None:
        self._inputs = inputs
        self.changed: set[str] = set()

    def check_given(self, method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """See `Execution.check_given`.

        Raises:
            InvalidInputError: (13) it is said since when changes are to be read.
        """
        if method.__name__ == "changes" and (args or {"after_version", "bookmark"} & set(kwargs)):
            raise spec_errors.InvalidInputError(
                "after_version, bookmark: not allowed for a table of inputs, whose changes follow its "
                "'previous_version', and are part of the write's key; pass the XCom of "
                "LanceFindChangesOperator or of LanceTableVersionSensor in inputs"
            )

    def record_read(
        self,
        table: TableId,
        location: str,  # noqa: ARG002 an input is opened at its location
        *versions: int | None,
    ) -> None:
        """See `Execution.record_read`."""
        self.changed |= {
            name
            for name, given in self._inputs.tables.items()
            if given.previous_version is not None
            and (given.table, given.version, given.previous_version) == (str(table), *versions)
        }
