"""The change a write makes to a table, and whether it conflicts with commits made since it began."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.keys import APPEND, OVERWRITE, Counts
from airflow_provider_lancens.spark.table.column_history import match_columns
from airflow_provider_lancens.spark.table.field_ids import FieldDescription, described_fields, field_ids
from airflow_provider_lancens.spark.table.history import data_changed, kept_version

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import FragmentMetadata, LanceDataset
    from lance.schema import LanceSchema


class CommitStep(NamedTuple):
    """A Lance operation, and the version it was made for (0: no dataset yet)."""

    operation: Any
    read_version: int
    counts: Counts | None = None
    """The counts of the change, if they depend on `read_version`."""
    updated: int | None = None
    """The rows that an upsert replaces."""
    deleted: int | None = None
    """The rows that an upsert deletes, rather than replaces."""

    def counts_with(self, written: Counts) -> Counts:
        """Return the counts of the commit, whose write has these."""
        return self.counts or replace(written, updated=self.updated, deleted=self.deleted)


RUN_AGAIN = "; nothing was committed, run it again"
"""The end of the message if a change conflicts with what others committed."""


@dataclass(frozen=True, slots=True)
class TableChange(ABC):
    """Fragments that were written while the table was at version `base`."""

    table: str
    base: int | None
    schema: pa.Schema
    fragments: Sequence[FragmentMetadata] = field(repr=False)
    written_for: LanceSchema | None = field(default=None, kw_only=True, repr=False)
    """The columns of `base` with their field ids, to which the files refer; None if there was no dataset."""

    KIND: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        """What it does, as its commit says, for a rerun that is to replace it."""
        return self.KIND

    @abstractmethod
    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """Return the operation that applies the change to the latest version.

        Args:
            latest: the dataset at its latest version; None if there is none.

        Raises:
            ConcurrentModificationError: (14) it conflicts with a commit made since `base`.
        """

    def check_same_columns(self, latest: LanceDataset) -> None:
        """Check that the fragments have exactly the columns of the dataset, which Lance does not check.

        Raises:
            ConcurrentModificationError: (14) others changed the columns or created the dataset meanwhile.
        """
        if self.base is None or latest.version < self.base:
            raise self._conflict("another writer created its dataset")
        if latest.schema != self.schema or not self._has_columns(latest) or self._changed_fields(latest):
            raise self._conflict(f"version {latest.version} changed its columns")

    def check_columns_kept(self, latest: LanceDataset) -> None:
        """Check that the dataset still has the columns of the fragments, and no others that must be set.

        Lance doesn't check this either. A file refers to its columns by field ids. If a column was converted
        to another type or dropped meanwhile, Lance ignores the values in the file, and reads null; or it
        reads them as those of a new column with the same id.

        Raises:
            ConcurrentModificationError: (14) others changed or dropped a column meanwhile.
        """
        required = [field.name for field in latest.schema if not field.nullable]
        if not self._has_columns(latest) or not set(required) <= set(self.schema.names):
            raise self._conflict(f"version {latest.version} changed its columns")
        if not self._are_renamed(latest, self._changed_fields(latest)):
            raise self._conflict(f"version {latest.version} gave other columns the ids of its columns")

    def _has_columns(self, latest: LanceDataset) -> bool:
        return self._written_ids <= field_ids(latest.lance_schema.fields())

    def _changed_fields(self, latest: LanceDataset) -> list[tuple[FieldDescription, FieldDescription]]:
        """Return the written fields whose ids have another name or type now, each as it was and as it is."""
        if self.written_for is None or self.written_for == latest.lance_schema:
            return []
        before, after = (described_fields(one.fields()) for one in (self.written_for, latest.lance_schema))
        shared = self._written_ids & before.keys() & after.keys()
        return [(before[one], after[one]) for one in shared if before[one] != after[one]]

    def _are_renamed(
        self, latest: LanceDataset, fields: Sequence[tuple[FieldDescription, FieldDescription]]
    ) -> bool:
        """Return whether fields are unchanged but for the name of their column."""
        if not fields:
            return True
        if any((old.path[1:], old.type) != (new.path[1:], new.type) for old, new in fields):
            return False
        before = kept_version(latest, self.base or 0)
        if before is None:
            return False
        names = match_columns(before, latest).names
        return all(names.get(new.path[0]) == old.path[0] for old, new in fields)

    @property
    def _written_ids(self) -> set[int]:
        return {number for fragment in self.fragments for file in fragment.files for number in file.fields}

    def _first_version(self) -> CommitStep:
        """Return the operation that creates the dataset, which doesn't exist.

        Raises:
            ConcurrentModificationError: (14) it existed when the write began.
        """
        if self.base is not None:
            raise self._conflict("its dataset was removed")
        return self._replacement(0)

    def _replacement(self, read_version: int) -> CommitStep:
        from lance import LanceOperation

        return CommitStep(LanceOperation.Overwrite(self.schema, list(self.fragments)), read_version)

    def _conflict(self, what: str) -> spec_errors.ConcurrentModificationError:
        since = "without a dataset" if self.base is None else f"version {self.base}"
        return spec_errors.ConcurrentModificationError(
            f"table {self.table}: {what} since this write began ({since}){RUN_AGAIN}"
        )


class Create(TableChange):
    """Create the dataset; one that another writer created is never replaced."""

    __slots__ = ()
    KIND = OVERWRITE

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`.

        Raises:
            TableAlreadyExistsError: (5) the dataset exists.
        """
        if latest is not None:
            raise already_exists(self.table, latest.version)
        return self._replacement(0)


class Overwrite(TableChange):
    """Replace all rows and the schema, unless rows were changed since the write began."""

    __slots__ = ()
    KIND = OVERWRITE

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: maintenance by others, such as a compaction, isn't a conflict."""
        if latest is None:
            return self._first_version()
        if self.base is None or latest.version < self.base or data_changed(latest, self.base):
            raise self._conflict(f"version {latest.version} changed its rows")
        return self._replacement(latest.version)


class Append(TableChange):
    """Add rows; rows that others appended meanwhile are kept."""

    __slots__ = ()
    KIND = APPEND

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: Lance rebases an append on any commit that doesn't replace all rows."""
        from lance import LanceOperation

        if latest is None:
            return self._first_version()
        if self.base is None:
            return self._onto_another_first_write(latest)
        if latest.version < self.base:
            raise self._conflict("its dataset was replaced")
        if latest.version > self.base:
            self.check_columns_kept(latest)
        return CommitStep(LanceOperation.Append(list(self.fragments)), self.base)

    def _onto_another_first_write(self, latest: LanceDataset) -> CommitStep:
        # The files refer to columns by field ids, which were assigned for a dataset created by this write.
        from lance import LanceOperation
        from lance.schema import LanceSchema

        versions = {f"{f.file_major_version}.{f.file_minor_version}" for m in self.fragments for f in m.files}
        if latest.lance_schema != LanceSchema.from_pyarrow(self.schema):
            raise self._conflict("another writer created its dataset with another schema")
        if versions - {latest.data_storage_version}:
            raise self._conflict("another writer created its dataset in another file format")
        return CommitStep(LanceOperation.Append(list(self.fragments)), latest.version)


KINDS: dict[str, type[TableChange]] = {"append": Append, "overwrite": Overwrite, "create": Create}
"""The kinds of changes by mode."""


def already_exists(table: str, version: int) -> spec_errors.TableAlreadyExistsError:
    """Return the error of a `create` on a table that has a dataset."""
    return spec_errors.TableAlreadyExistsError(
        f"table {table}: mode 'create' writes the first version, but version {version} exists; "
        "append to it or overwrite it"
    )
