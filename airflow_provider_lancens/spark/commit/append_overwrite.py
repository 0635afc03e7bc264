"""Changes of appends, overwrites and creations, and the commits of others that conflict with them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.commit.table_change import CommitStep, RowDeletions, TableChange
from airflow_provider_lancens.spark.keys import (
    APPEND,
    OVERWRITE,
    REPLACE_WHERE,
)
from airflow_provider_lancens.spark.table.history import data_changed
from airflow_provider_lancens.spark.table.row_difference import changed_rows

if TYPE_CHECKING:
    from lance import LanceDataset


class AppendCommit(TableChange):
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


class CreateCommit(TableChange):
    """Create the dataset; a dataset that another writer created is never replaced."""

    __slots__ = ()
    KIND = OVERWRITE

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`.

        Raises:
            TableAlreadyExistsError: (5) the dataset exists.
        """
        if latest is not None:
            raise already_exists(self.table, latest.version)
        return self._overwrite_step(0)


class OverwriteCommit(TableChange):
    """Replace all rows and the schema, unless rows were changed since the write began."""

    __slots__ = ()
    KIND = OVERWRITE

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: maintenance by others, such as a compaction, isn't a conflict."""
        if latest is None:
            return self._first_version()
        if self.base is None or latest.version < self.base or data_changed(latest, self.base):
            raise self._conflict(f"version {latest.version} changed its rows")
        return self._overwrite_step(latest.version)._replace(deleted=latest.count_rows())


KINDS: dict[str, type[TableChange]] = {
    "append": AppendCommit,
    "overwrite": OverwriteCommit,
    "create": CreateCommit,
}
"""The kinds of changes by mode."""


def already_exists(table: str, version: int) -> spec_errors.TableAlreadyExistsError:
    """Return the error of a `create` on a table that has a dataset."""
    return spec_errors.TableAlreadyExistsError(
        f"table {table}: mode 'create' writes the first version, but version {version} exists; "
        "append to it or overwrite it"
    )


_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ReplaceWhereCommit(TableChange):
    """Delete the rows that match a condition at commit time, and add the fragments."""

    condition: str
    """In Lance's SQL, as it is rendered of a parsed condition."""

    @property
    def kind(self) -> str:
        """See `TableChange.kind`: with a digest of the condition, by which replacements are compared."""
        return replace_where_kind(self.condition)

    def apply_to(self, latest: LanceDataset | None) -> CommitStep:
        """See `TableChange.apply_to`: commits of others conflict only if they wrote rows that match."""
        from lance import LanceOperation

        if latest is None:
            return self._first_version()
        self.check_same_columns(latest)
        if self.base is not None and data_changed(latest, self.base):
            self._check_no_new_rows(latest, self.base)
        replaced = RowDeletions.where(latest, self.condition)
        operation = LanceOperation.Update(
            removed_fragment_ids=replaced.removed,
            updated_fragments=replaced.updated,
            new_fragments=list(self.fragments),
        )
        return CommitStep(operation, latest.version, deleted=replaced.rows)

    def _check_no_new_rows(self, latest: LanceDataset, base: int) -> None:
        """Check that others have written no row that matches since the write began.

        A restore that brings such a row back writes it, too. A row that others rewrote as it is wasn't
        written.

        Raises:
            ConcurrentModificationError: (14) there is one, whose rows this commit would delete.
        """
        changed = changed_rows(latest, base, [], self.condition)
        if changed is None:
            raise self._conflict(f"version {base} was cleaned up")
        written, _ = changed.count_differing(changed.written, changed.deleted)
        if written:
            raise self._conflict(f"other writers wrote rows where {self.condition}")


def replace_where_kind(condition: str) -> str:
    """Return the kind of a replacement of the rows that match a condition, in Lance's SQL."""
    return f"{REPLACE_WHERE}/{hashlib.sha256(condition.encode()).hexdigest()[:_DIGITS]}"
