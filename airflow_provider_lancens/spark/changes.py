"""What a write does to a table, and whether it still may when others have committed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from lance_namespace.errors import ConcurrentModificationError, TableAlreadyExistsError

from airflow_provider_lancens.spark.history import Counts, data_changed

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import FragmentMetadata, LanceDataset


class Step(NamedTuple):
    """A Lance operation, and the version whose state it was made for (0: no data set yet)."""

    operation: Any
    read_version: int
    counts: Counts | None = None
    """What it brings, where only the state tells."""


@dataclass(frozen=True, slots=True)
class Change:
    """Fragments that were written while the table was at version `base`."""

    table: str
    base: int | None
    schema: pa.Schema
    fragments: Sequence[FragmentMetadata] = field(repr=False)

    def onto(self, latest: LanceDataset | None) -> Step:
        """The operation that brings the change into the table as it is now.

        Args:
            latest: the data set at its latest version; None where there is none.

        Raises:
            ConcurrentModificationError: (14) what others committed since `base` leaves no room for it.
        """
        raise NotImplementedError

    def check_same_columns(self, latest: LanceDataset) -> None:
        """Return where the fragments have the columns of the data set; Lance would not look.

        Raises:
            ConcurrentModificationError: (14) others changed the columns, or made the data set, meanwhile.
        """
        if self.base is None or latest.version < self.base:
            raise self._overtaken("another writer created its data set")
        if latest.schema != self.schema:
            raise self._overtaken(f"version {latest.version} changed its columns")

    def _replacement(self, read_version: int) -> Step:
        from lance import LanceOperation

        return Step(LanceOperation.Overwrite(self.schema, list(self.fragments)), read_version)

    def _overtaken(self, what: str) -> ConcurrentModificationError:
        since = "there was no data set" if self.base is None else f"version {self.base}"
        return ConcurrentModificationError(
            f"table {self.table}: {what} since this write began ({since}); "
            "nothing was committed, run it again"
        )


class Create(Change):
    """Make the data set; somebody else's is never replaced."""

    __slots__ = ()

    def onto(self, latest: LanceDataset | None) -> Step:
        """See `Change.onto`.

        Raises:
            TableAlreadyExistsError: (5) there is a data set.
        """
        if latest is not None:
            raise already_there(self.table, latest.version)
        return self._replacement(0)


class Overwrite(Change):
    """Replace all rows and the schema, unless rows were changed that this write has not seen."""

    __slots__ = ()

    def onto(self, latest: LanceDataset | None) -> Step:
        """See `Change.onto`: maintenance by others, such as a compaction, doesn't stand in the way."""
        if latest is None:
            if self.base is not None:
                raise self._overtaken("its data set was removed")
            return self._replacement(0)
        if self.base is None or latest.version < self.base or data_changed(latest, self.base):
            raise self._overtaken(f"version {latest.version} changed its rows")
        return self._replacement(latest.version)


class Append(Change):
    """Add rows; whatever others appended meanwhile stays."""

    __slots__ = ()

    def onto(self, latest: LanceDataset | None) -> Step:
        """See `Change.onto`: Lance itself rebases an append on all that doesn't replace the rows."""
        if latest is None:
            if self.base is not None:
                raise self._overtaken("its data set was removed")
            return self._replacement(0)
        if self.base is None:
            return self._onto_another_first_write(latest)
        if latest.version < self.base:
            raise self._overtaken("its data set was replaced")
        return self._addition(self.base)

    def _addition(self, read_version: int) -> Step:
        from lance import LanceOperation

        return Step(LanceOperation.Append(list(self.fragments)), read_version)

    def _onto_another_first_write(self, latest: LanceDataset) -> Step:
        # The files name columns by field ids, which were given out for a data set of our own.
        from lance.schema import LanceSchema

        versions = {f"{f.file_major_version}.{f.file_minor_version}" for m in self.fragments for f in m.files}
        if latest.lance_schema != LanceSchema.from_pyarrow(self.schema):
            raise self._overtaken("another writer created its data set with another schema")
        if versions - {latest.data_storage_version}:
            raise self._overtaken("another writer created its data set in another file format")
        return self._addition(latest.version)


KINDS: dict[str, type[Change]] = {"append": Append, "overwrite": Overwrite, "create": Create}
"""The change by the name of the mode."""


def already_there(table: str, version: int) -> TableAlreadyExistsError:
    """The error of a `create` where the table has a data set."""
    return TableAlreadyExistsError(
        f"table {table}: mode 'create' makes the first version, but version {version} exists; "
        "append to it or overwrite it"
    )
