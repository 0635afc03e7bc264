"""Whether the column that an index was built of is the same column in the version that gets the index.

Lance commits an index to any version with other columns: the index of a column that was dropped meanwhile
then refers to a field that doesn't exist, and each read with a filter fails. A column that was dropped and
added again may have the same field id, and other values.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from airflow_provider_lancens.spark.table.history import at_version, transactions_of
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

    @classmethod
    def of(cls, target: ResolvedTable, dataset: LanceDataset, name: str) -> Self:
        """Return a column of a dataset that is opened at the version whose rows are indexed.

        Nothing is read of that version later, which a clean-up may remove.
        """
        columns = VersionSchema.of(dataset)
        return cls(target, name, dataset.version, columns, _Column.of(dataset, name))

    def check_kept(self, version: int) -> None:
        """Check that a version has the same column, perhaps by another name.

        Args:
            version: the version right before the version that gets the index.

        Raises:
            ConcurrentModificationError: (14) others have converted, dropped or replaced the column.
            LanceNamespaceError: the version can't be read, see `storage_failures`.
        """
        if version == self.version:
            return
        dataset = self.target.dataset
        try:
            with storage_failures(dataset.location, dataset.storage_options):
                is_kept = self._is_kept(self.target.open(version))
        except spec_errors.TableVersionNotFoundError as error:
            raise self._conflict(f"version {version} was replaced and cleaned up") from error
        if not is_kept:
            raise self._conflict(f"column {self.name!r} was converted, dropped or replaced")

    def _conflict(self, what: str) -> spec_errors.ConcurrentModificationError:
        return spec_errors.ConcurrentModificationError(
            f"table {self.target.id}: {what} since version {self.version}, whose rows were indexed; nothing "
            "was committed, run it again"
        )

    def _is_kept(self, after: LanceDataset) -> bool:
        name = self._name_in(after)
        return name is not None and _Column.of(after, name) == self._column

    def _name_in(self, after: LanceDataset) -> str | None:
        """Return the name of the column in a later version; None if that doesn't have it."""
        changes = schema_changes(partial(at_version, after), transactions_of(after, self.version))
        history = column_history(after, self.version, self._columns, changes)
        if history is None:  # a version in between was cleaned up, so the column is known by its id alone
            return VersionSchema.of(after).by_id.get(self._columns.ids[self.name])
        return history.match(after.version, self.version).get(self.name)
