"""Whether the column that an index was built of is the same column in the version that gets the index.

Lance commits an index to any version with other columns: the index of a column that was dropped meanwhile
then refers to a field that doesn't exist, and each read with a filter fails. A column that was dropped and
added again may have the same field id, and other values. A fragment whose values of the column were rewritten
in place is left out of the index by Lance, but only as long as the version that rewrote them is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.column_history import (
    VersionSchema,
    column_history,
    field_ids,
    schema_changes,
)
from airflow_provider_lancens.spark.table.history import at_version, transactions, transactions_of
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset


class _Column(NamedTuple):
    ids: frozenset[int]
    """The ids of its field, and of all fields in it."""
    type: pa.DataType

    @classmethod
    def of(cls, dataset: LanceDataset, name: str) -> Self:
        return cls(frozenset(field_ids([dataset.lance_schema.field(name)])), dataset.schema.field(name).type)


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """The column of an index, at the version whose rows are indexed."""

    target: ResolvedTable
    name: str
    version: int
    _columns: VersionSchema
    _column: _Column
    _files: Mapping[int, frozenset[str]] = field(repr=False)
    """The files with its values, by fragment."""

    @classmethod
    def of(cls, target: ResolvedTable, dataset: LanceDataset, name: str) -> Self:
        """Return a column of a dataset that is opened at the version whose rows are indexed.

        Nothing is read of that version later, which a clean-up may remove.
        """
        columns, column = VersionSchema.of(dataset), _Column.of(dataset, name)
        return cls(target, name, dataset.version, columns, column, _files_with(dataset, column.ids))

    def check_kept(self, version: int) -> None:
        """Check that a version has the same column, perhaps by another name.

        Args:
            version: the version right before the version that gets the index.

        Raises:
            ConcurrentModificationError: (14) others have converted, dropped or replaced the column, or
                rewritten its values by a version that was cleaned up.
            LanceNamespaceError: the version can't be read, see `storage_failures`.
        """
        if version == self.version:
            return
        dataset = self.target.dataset
        try:
            with storage_failures(dataset.location, dataset.storage_options):
                after = self.target.open(version)
                is_kept, is_rewritten = self._is_kept(after), self._is_rewritten(after)
        except spec_errors.TableVersionNotFoundError as error:
            raise self._conflict(f"version {version} was replaced and cleaned up") from error
        if not is_kept:
            raise self._conflict(f"column {self.name!r} was converted, dropped or replaced")
        if is_rewritten:
            raise self._conflict(f"values of column {self.name!r} were rewritten")

    def _conflict(self, what: str) -> spec_errors.ConcurrentModificationError:
        return spec_errors.ConcurrentModificationError(
            f"table {self.target.id}: {what} since version {self.version}, whose rows were indexed; nothing "
            "was committed, run it again"
        )

    def _is_kept(self, after: LanceDataset) -> bool:
        name = self._name_in(after)
        return name is not None and _Column.of(after, name) == self._column

    def _is_rewritten(self, after: LanceDataset) -> bool:
        """Return whether values were rewritten without a transaction by which Lance knows of it."""
        if all(transaction is not None for _, transaction in transactions(after, self.version)):
            return False
        files = _files_with(after, self._column.ids)
        return any(files.get(fragment, before) != before for fragment, before in self._files.items())

    def _name_in(self, after: LanceDataset) -> str | None:
        """Return the name of the column in a later version; None if that doesn't have it."""
        changes = schema_changes(partial(at_version, after), transactions_of(after, self.version))
        history = column_history(after, self.version, self._columns, changes)
        if history is None:  # a version in between was cleaned up, so the column is known by its id alone
            return VersionSchema.of(after).by_id.get(self._columns.ids[self.name])
        return history.match(after.version, self.version).get(self.name)


def _files_with(dataset: LanceDataset, ids: frozenset[int]) -> dict[int, frozenset[str]]:
    """Return the files with values of some fields, by fragment."""
    found = {}
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        files = (*metadata.files, *(overlay.data_file for overlay in metadata.overlays))
        found[fragment.fragment_id] = frozenset(
            file.path for file in files if not ids.isdisjoint(file.fields)
        )
    return found
