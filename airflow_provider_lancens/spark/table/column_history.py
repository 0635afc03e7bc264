"""Which columns of two versions of a table are the same column.

Lance identifies columns by field ids, but an id can change its meaning: an overwrite numbers all columns
again, and a new column gets the id of a dropped one once no data file has that id any more. So columns are
followed through the commits between the versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from airflow_provider_lancens.spark.table.field_ids import field_ids
from airflow_provider_lancens.spark.table.history import restored_version, transactions_of

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

_SCHEMA_CHANGES = frozenset({"Project", "Merge", "Overwrite", "Restore"})


@dataclass(frozen=True, slots=True)
class VersionSchema:
    """The columns of a version."""

    ids: Mapping[str, int]
    """The field id of each column."""
    schema: pa.Schema

    @classmethod
    def of(cls, dataset: LanceDataset) -> Self:
        """Return the columns of an opened version."""
        ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
        return cls(ids, dataset.schema)

    @property
    def by_id(self) -> dict[int, str]:
        """The name of each column by its field id."""
        return {number: name for name, number in self.ids.items()}


class MatchedColumns(NamedTuple):
    """The columns of one version in another."""

    names: Mapping[str, str]
    """The other name of each column that both versions have."""
    unknown: frozenset[str] = frozenset()
    """The columns of which it is unknown, since a version in between was cleaned up."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A commit that may have changed the columns."""

    version: int
    columns: VersionSchema
    """The columns afterwards."""
    is_overwrite: bool
    restored: int | None
    """The version whose columns and rows it restored, if it did."""


def match_columns(
    read: LanceDataset, wanted: LanceDataset, changes: Sequence[SchemaChange] | None = None
) -> MatchedColumns:
    """Find the columns of one version in another, which may be older or newer.

    Args:
        read: the version in which they are searched.
        wanted: the version whose columns they are.
        changes: the changes of columns between the two, if they were read already.
    """
    if VersionSchema.of(read).ids == VersionSchema.of(wanted).ids:
        return MatchedColumns({name: name for name in wanted.schema.names})
    older, newer = sorted((read, wanted), key=lambda one: one.version)
    if changes is None:
        changes = schema_changes(newer, older.version)
    names = None if changes is None else names_before(older, VersionSchema.of(older), older.version, changes)
    if names is None:
        return _match_by_files(read, wanted)
    return MatchedColumns(names if newer is wanted else {old: new for new, old in names.items()})


def changes_schema(transaction: Transaction) -> bool:
    """Return whether a transaction may have changed the columns."""
    return type(transaction.operation).__name__ in _SCHEMA_CHANGES


def schema_changes(newest: LanceDataset, after: int) -> list[SchemaChange] | None:
    """Return the changes of columns above a version, oldest first; None if a version was cleaned up.

    Args:
        newest: the last version, which may be a staged one.
        after: the version before the first change.
    """
    found = []
    for version, transaction in transactions_of(newest, after):
        if transaction is None:
            return None
        if changes_schema(transaction):
            dataset = newest if version == newest.version else newest.checkout_version(version)
            overwrites = type(transaction.operation).__name__ == "Overwrite"
            restored = restored_version(transaction)
            found.append(SchemaChange(version, VersionSchema.of(dataset), overwrites, restored))
    return found[::-1]


def names_before(
    dataset: LanceDataset, columns: VersionSchema, version: int, changes: Sequence[SchemaChange]
) -> dict[str, str] | None:
    """Return the former name of each column that was there before some changes; None if it is unknown.

    Args:
        dataset: a dataset opened at this version or a later one.
        columns: the columns before the changes.
        version: the version that has them.
        changes: the changes, oldest first.
    """
    states = [(version, columns, {name: name for name in columns.ids})]
    for change in changes:
        _, before, former = states[-1]
        if change.restored is not None:
            names = _restored_names(dataset, states, change)
            if names is None:
                return None
        else:
            step = _kept_columns(before, change)
            names = {name: former[old] for name, old in step.items() if old in former}
        states.append((change.version, change.columns, names))
    return states[-1][2]


def _kept_columns(before: VersionSchema, change: SchemaChange) -> dict[str, str]:
    """Return the name just before a change of each column that it kept."""
    after, by_id = change.columns, {} if change.is_overwrite else before.by_id
    found = {name: by_id[number] for name, number in after.ids.items() if number in by_id}
    for field in after.schema:
        # A conversion to another type gives a column another id.
        replaced = change.is_overwrite or before.ids.get(field.name) not in after.by_id
        if field.name not in found and replaced and _has_similar(before.schema, field):
            found[field.name] = field.name
    return found


def _restored_names(
    dataset: LanceDataset, states: Sequence[tuple[int, VersionSchema, dict[str, str]]], change: SchemaChange
) -> dict[str, str] | None:
    first, restored = states[0][0], change.restored or 0
    if restored >= first:
        return next(names for version, _, names in reversed(states) if version <= restored)
    earlier = schema_changes(dataset.checkout_version(first), restored)
    names = None if earlier is None else names_before(dataset, change.columns, restored, earlier)
    return None if names is None else {old: new for new, old in names.items()}


def _match_by_files(read: LanceDataset, wanted: LanceDataset) -> MatchedColumns:
    """Match columns without the commits: an id in a data file of both versions means the same in both."""
    here, there = VersionSchema.of(read), VersionSchema.of(wanted)
    shared = _ids_in_files(read, wanted)
    known = [number for name, number in there.ids.items() if here.ids.get(name) == number]
    for field in wanted.lance_schema.fields():
        leaves = field_ids([field]) - ({field.id()} if field.children() else set())
        known += [field.id()] if leaves <= shared else []
    names = {there.by_id[number]: here.by_id[number] for number in known if number in here.by_id}
    others = here.ids.keys() - names.values()
    unknown = {
        name
        for name, number in there.ids.items()
        if number not in known and (name in others or here.by_id.get(number) in others)
    }
    return MatchedColumns(names, frozenset(unknown))


def _ids_in_files(one: LanceDataset, other: LanceDataset) -> set[int]:
    """Return the field ids in the data files that both versions have."""
    files, more = ({file.path: file.fields for file in _data_files(dataset)} for dataset in (one, other))
    return {number for path in files.keys() & more.keys() for number in {*files[path]} & {*more[path]}}


def _data_files(dataset: LanceDataset) -> Sequence[Any]:
    return [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]


def _has_similar(schema: pa.Schema, field: pa.Field) -> bool:
    """Return whether a schema has a column of this name, of the field's type or one of the same kind."""
    if field.name not in schema.names:
        return False
    types = (schema.field(field.name).type, field.type)
    return types[0] == types[1] or any(all(map(is_kind, types)) for is_kind in _KINDS)


_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    lambda one: pa.types.is_integer(one) or pa.types.is_floating(one) or pa.types.is_decimal(one),
    lambda one: pa.types.is_string(one) or pa.types.is_large_string(one),
    lambda one: pa.types.is_binary(one) or pa.types.is_large_binary(one),
    pa.types.is_timestamp,
    pa.types.is_nested,
)
"""Kinds of types within which values are converted; one that does not fit is an error with the column."""
