"""Which columns of two versions are the same column, by Lance's field ids and the commits in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from airflow_provider_lancens.spark.table.history import (
    at_version,
    data_files,
    kept_version,
    restored_version,
    transactions_of,
)

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction


def field_ids(fields: Iterable[Any]) -> set[int]:
    """Return the ids of these fields of a Lance schema, and of all fields in them."""
    return {number for field in fields for number in (field.id(), *field_ids(field.children()))}


class FieldDescription(NamedTuple):
    """What a field id stands for."""

    path: tuple[str, ...]
    """The names from the column to the field."""
    type: str
    """Arrow's type; ``nested`` if the field has nested fields, which are described themselves."""


def described_fields(fields: Iterable[Any]) -> Mapping[int, FieldDescription]:
    """Describe each of these fields of a Lance schema, and all fields in them, by id."""
    return dict(_described(fields, ()))


def _described(fields: Iterable[Any], path: tuple[str, ...]) -> Iterator[tuple[int, FieldDescription]]:
    for field in fields:
        here, children = (*path, field.name()), list(field.children())
        yield field.id(), FieldDescription(here, "nested" if children else str(field.to_arrow().type))
        yield from _described(children, here)


Commits = Iterable[tuple[int, "Transaction | None"]]
"""Versions with their transactions, newest first; None for a version that was cleaned up."""

_SCHEMA_CHANGES = frozenset({"Project", "Merge", "Overwrite", "Restore"})


@dataclass(frozen=True, slots=True)
class VersionSchema:
    """The columns of a version."""

    ids: Mapping[str, int]
    """The field id of each column, in their order."""
    by_id: Mapping[int, str]
    """The name of each column by its field id."""
    schema: pa.Schema

    @classmethod
    def of(cls, dataset: LanceDataset) -> Self:
        """Return the columns of an opened version."""
        ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
        return cls(ids, {number: name for name, number in ids.items()}, dataset.schema)


class MatchedColumns(NamedTuple):
    """The columns of one version in another."""

    names: Mapping[str, str]
    """The name in the other version of each column that both have."""
    unknown: frozenset[str] = frozenset()
    """The columns that the other version may have, but a version in between was cleaned up."""
    replaced: frozenset[str] = frozenset()
    """The columns that an overwrite in between may have replaced by a column of another kind of type."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A commit that may have changed the columns."""

    version: int
    columns: VersionSchema
    """The columns afterwards."""
    is_overwrite: bool
    restored: int | None
    """The version whose columns and rows it restored, if it did."""


class ColumnHistory:
    """The columns of a range of versions, each followed through its changes.

    Args:
        first: the first version.
        columns: its columns.
        changes: the changes after it, oldest first, including the changes after each restored version.
    """

    def __init__(self, first: int, columns: VersionSchema, changes: Sequence[SchemaChange]) -> None:
        self._numbers = count()
        before = columns
        self._states = [(first, {name: next(self._numbers) for name in columns.ids})]
        """The columns from a version on, by their name: an equal number is the same column."""
        for change in changes:
            self._states.append((change.version, self._after(before, change)))
            before = change.columns

    def match(self, read: int, wanted: int) -> dict[str, str]:
        """Return the name in one version of each column of another that both have."""
        names = {number: name for name, number in self._at(read).items()}
        return {name: names[number] for name, number in self._at(wanted).items() if number in names}

    def _at(self, version: int) -> dict[str, int]:
        return next(columns for since, columns in reversed(self._states) if since <= version)

    def _after(self, before: VersionSchema, change: SchemaChange) -> dict[str, int]:
        if change.restored is not None:
            return self._at(change.restored)
        _, numbers = self._states[-1]
        kept = _kept_columns(before, change)
        return {
            name: numbers[kept[name]] if name in kept else next(self._numbers) for name in change.columns.ids
        }


def match_columns(read: LanceDataset, wanted: LanceDataset, commits: Commits | None = None) -> MatchedColumns:
    """Find the columns of one version in another, which may be older or newer.

    Args:
        read: the version in which they are searched.
        wanted: the version whose columns they are.
        commits: the commits between the two; None reads them.
    """
    older, newer = sorted((read, wanted), key=lambda schema: schema.version)
    if commits is None:
        commits = transactions_of(newer, older.version)
    changes = schema_changes(partial(at_version, newer), commits)
    columns = VersionSchema.of(older)
    matched = match_in(column_history(older, older.version, columns, changes), read, wanted)
    if changes is None:
        return matched._replace(replaced=_names_of_other_kinds(columns, VersionSchema.of(newer)))
    return matched._replace(replaced=_replaced_columns(columns, changes))


def _replaced_columns(before: VersionSchema, changes: Sequence[SchemaChange]) -> frozenset[str]:
    replaced: frozenset[str] = frozenset()
    for change in changes:
        if change.is_overwrite:
            replaced |= _names_of_other_kinds(before, change.columns)
        before = change.columns
    return replaced


def _names_of_other_kinds(before: VersionSchema, after: VersionSchema) -> frozenset[str]:
    return frozenset(
        name
        for name in before.ids.keys() & after.ids.keys()
        if not are_similar(before.schema.field(name).type, after.schema.field(name).type)
    )


def match_in(history: ColumnHistory | None, read: LanceDataset, wanted: LanceDataset) -> MatchedColumns:
    """Find the columns of one version in another by their history, or without it by their files."""
    if history is None:
        return match_by_files(read, wanted)
    return MatchedColumns(history.match(read.version, wanted.version))


def column_history(
    dataset: LanceDataset, first: int, columns: VersionSchema, changes: Sequence[SchemaChange] | None
) -> ColumnHistory | None:
    """Return the history of columns since a version; None if a version that it needs was cleaned up.

    Args:
        dataset: any version of the dataset.
        first: the first version.
        columns: its columns.
        changes: the changes after it, oldest first; None if a version was cleaned up.
    """
    # A version that was restored may be older, and its columns may have changed until this one.
    while changes is not None:
        older = [change for change in changes if change.restored is not None and change.restored < first]
        if not older:
            return ColumnHistory(first, columns, changes)
        start = min(older, key=lambda change: change.restored or 0)
        newest, first, columns = first, start.restored or 0, start.columns
        earlier = _changes_between(dataset, first, newest)
        changes = None if earlier is None else [*earlier, *changes]
    return None


def changes_schema(version: int, transaction: Transaction) -> bool:
    """Return whether a commit may have changed the columns of the version before."""
    return version > 1 and type(transaction.operation).__name__ in _SCHEMA_CHANGES


def schema_changes(
    open_version: Callable[[int], LanceDataset], commits: Commits
) -> list[SchemaChange] | None:
    """Return the changes of columns among some commits, oldest first; None if a version was cleaned up.

    Args:
        open_version: opens a version of the dataset.
        commits: the commits, newest first.
    """
    found = []
    for version, transaction in commits:
        if transaction is None:
            return None
        if changes_schema(version, transaction):
            try:
                columns = VersionSchema.of(open_version(version))
            except (OSError, ValueError):
                return None  # a clean-up removed it since
            overwrites = type(transaction.operation).__name__ == "Overwrite"
            found.append(SchemaChange(version, columns, overwrites, restored_version(transaction)))
    return found[::-1]


def match_by_files(read: LanceDataset, wanted: LanceDataset) -> MatchedColumns:
    """Match columns without the commits: an id in a data file of both versions means the same in both."""
    here, there = VersionSchema.of(read), VersionSchema.of(wanted)
    shared = _ids_in_files(read, wanted)
    known = {number for name, number in there.ids.items() if _is_equal(here, there, name)}
    for field in wanted.lance_schema.fields():
        leaves = field_ids([field]) - ({field.id()} if field.children() else set())
        # A file also has the ids of columns that were dropped since, or converted under another id.
        known |= {field.id()} if field.id() in here.by_id and leaves <= shared else set()
    names = {there.by_id[number]: here.by_id[number] for number in known if number in here.by_id}
    others = [here.schema.field(name) for name in here.ids.keys() - names.values()]
    unknown = {
        field.name
        for field in there.schema
        if there.ids[field.name] not in known
        and any(are_similar(field.type, column.type) for column in others)
    }
    return MatchedColumns(names, frozenset(unknown))


def are_similar(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether two types are equal or of the same kind, so that values are converted."""
    left, right = (each.value_type if pa.types.is_dictionary(each) else each for each in (left, right))
    return left == right or any(is_kind(left) and is_kind(right) for is_kind in _KINDS)


_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    lambda arrow: pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow),
    lambda arrow: pa.types.is_string(arrow) or pa.types.is_large_string(arrow),
    lambda arrow: (
        pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or pa.types.is_fixed_size_binary(arrow)
    ),
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
    pa.types.is_timestamp,
    pa.types.is_nested,
)
"""Kinds of types within which values are converted; a value that does not fit is an error with the column."""


def _kept_columns(before: VersionSchema, change: SchemaChange) -> dict[str, str]:
    """Return the name just before a change of each column that it kept."""
    after, by_id = change.columns, {} if change.is_overwrite else before.by_id
    by_name = {name: name for name in after.ids if name in before.ids}
    others = by_name if change.is_overwrite else _converted_columns(before, after)
    kept = {name: by_id[number] for name, number in after.ids.items() if number in by_id}
    for name, old in others.items():
        types = (before.schema.field(old).type, after.schema.field(name).type)
        kept.update({name: old} if are_similar(*types) else {})
    return kept


def _converted_columns(before: VersionSchema, after: VersionSchema) -> dict[str, str]:
    """Return the former name of each column whose id is new, since it replaces a column that is gone."""
    gone = before.ids.keys() - {before.by_id.get(number) for number in after.ids.values()}
    pairs = zip(after.ids.items(), before.ids, strict=False)
    return {name: old for (name, number), old in pairs if old in gone and number not in before.by_id}


def _changes_between(dataset: LanceDataset, after: int, version: int) -> list[SchemaChange] | None:
    newest = kept_version(dataset, version)
    if newest is None:
        return None
    return schema_changes(partial(at_version, newest), transactions_of(newest, after))


def _is_equal(here: VersionSchema, there: VersionSchema, name: str) -> bool:
    if here.ids.get(name) != there.ids[name]:
        return False
    return bool(here.schema.field(name).type == there.schema.field(name).type)


def _ids_in_files(left: LanceDataset, right: LanceDataset) -> set[int]:
    """Return the field ids in the data files that both versions have."""
    files, more = ({file.path: file.fields for file in data_files(dataset)} for dataset in (left, right))
    return {number for path in files.keys() & more.keys() for number in {*files[path]} & {*more[path]}}
