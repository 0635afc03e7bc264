"""Request and options of a write. Plain data: imports nothing heavy."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, ClassVar, Literal, NoReturn, Self, TypeGuard, get_args

Mode = Literal["append", "overwrite", "create", "upsert"]
MODES: tuple[str, ...] = get_args(Mode)

WhenMatched = Literal["update", "keep"]
WHEN_MATCHED: tuple[str, ...] = get_args(WhenMatched)

OnExistingKey = Literal["redo", "redo_if_changed", "skip", "write_again"]
ON_EXISTING_KEY: tuple[str, ...] = get_args(OnExistingKey)

VERSION_AUTHORITIES = {"storage": "storage", "catalog": "impl"}
"""Version authorities, with the specification's value of ``managed_by``."""

SchemaMode = Literal["strict", "merge", "overwrite"]
SCHEMA_MODES: tuple[str, ...] = get_args(SchemaMode)

DEFAULT_ROWS_PER_FILE = 1024 * 1024
"""Lance's default."""

MILLISECOND = timedelta(milliseconds=1)
LONGEST_EXPIRY = timedelta(days=36_500)
"""The shortest and the longest time after which a bookmark may expire."""


MAX_ROWS = 2**63 - 1
"""The largest number of rows or versions that Lance counts."""


def is_whole_number(value: object, *, at_least: int, at_most: int | None = None) -> bool:
    """Return whether a value is an integer, not a bool, from `at_least` to `at_most`."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return value >= at_least and (at_most is None or value <= at_most)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Check that a value is one of the allowed ones.

    Raises:
        InvalidInputError: (13) it isn't; the message names the argument, the choices and the value.
    """
    if value not in choices:
        _refuse(not_a_choice(name, value, choices))


def not_a_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return the message for a value that is none of the allowed ones."""
    return f"{name}: expected one of {', '.join(choices)}, got {value!r}"


def not_a_flag(name: str, value: object) -> str:
    """Return the message for a value that is neither True nor False."""
    return f"{name}: expected True or False, got {value!r}"


def is_list(value: object) -> TypeGuard[Collection[Any]]:
    """Return whether a value is a list, a tuple or another collection, and neither text nor a mapping."""
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _is_list_of_columns(value: object, *, at_least: int = 1) -> bool:
    return is_list(value) and len(value) >= at_least and all(isinstance(name, str) and name for name in value)


def check_flag(name: str, value: object) -> None:
    """Check that a value is True or False; any text, such as ``"false"``, would count as True.

    Raises:
        InvalidInputError: (13) it isn't; the message names the argument and the value.
    """
    if not isinstance(value, bool):
        _refuse(not_a_flag(name, value))


def check_expires_after(value: object) -> None:
    """Check the time after which a bookmark expires; None is never.

    Raises:
        ValueError: it isn't a time span, or out of range.
    """
    if value is None:
        return
    if not isinstance(value, timedelta) or not MILLISECOND <= value <= LONGEST_EXPIRY:
        raise ValueError(
            "expires_after: expected a timedelta of at least a millisecond and at most "
            f"{LONGEST_EXPIRY.days} days, or None, got {value!r}"
        )


def plain_timedelta(value: timedelta) -> timedelta:
    """Return a time span as a `timedelta` itself, since a duration of pendulum can't be divided by one."""
    return value if type(value) is timedelta else timedelta(seconds=value.total_seconds())


def check_positive(name: str, value: object) -> None:
    """Check that a value is a positive integer.

    Raises:
        ValueError: it isn't; the message names it.
    """
    if not is_whole_number(value, at_least=1):
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Storage layout of a dataset.

    Raises:
        TypeError, ValueError: an option is invalid; the message names it.
    """

    max_rows_per_file: int = DEFAULT_ROWS_PER_FILE
    """Rows after which a task starts the next data file."""
    data_storage_version: str | None = None
    """Lance's file format for a new dataset, such as ``2.1``; None is Lance's default."""
    stable_row_ids: bool = False
    """Whether a new dataset's row ids survive compaction."""
    vector_columns: Mapping[str, int] = field(default_factory=dict)
    """Array columns that a new dataset stores as fixed-size lists, with their dimension."""
    blob_columns: Sequence[str] = field(default_factory=list)
    """Columns of large values, or of references to files, that a new dataset stores as blobs."""

    def __post_init__(self) -> None:
        check_positive("max_rows_per_file", self.max_rows_per_file)
        if not isinstance(self.data_storage_version, str | None):
            raise TypeError(
                "data_storage_version: expected the name of a file format, such as '2.1', got "
                f"{self.data_storage_version!r}"
            )
        if not isinstance(self.stable_row_ids, bool):
            raise TypeError(not_a_flag("stable_row_ids", self.stable_row_ids))
        if not isinstance(self.vector_columns, Mapping):
            raise TypeError(
                f"vector_columns: expected a mapping of columns to dimensions, got {self.vector_columns!r}"
            )
        for column, dimension in self.vector_columns.items():
            check_positive(f"vector_columns[{column!r}]", dimension)
        names = self.blob_columns
        if not _is_list_of_columns(names, at_least=0):
            raise TypeError(f"blob_columns: expected a list of columns, got {names!r}")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the layout that `to_json` described.

        Raises:
            TypeError, ValueError: it isn't one.
        """
        values = json.loads(text)
        if not isinstance(values, dict):
            raise TypeError(f"expected a JSON object, got {text!r}")
        return cls(**values)

    def to_json(self) -> str:
        """Return the fields that differ from their defaults, as JSON."""
        return json.dumps(self._given(), sort_keys=True)

    def over(self, declared: TableLayout) -> TableLayout:
        """Return this layout with the fields of a declared one where a field is at its default."""
        return replace(declared, **self._given())

    def _given(self) -> dict[str, Any]:
        default = asdict(DEFAULT_LAYOUT)
        return {name: value for name, value in asdict(self).items() if value != default[name]}


DEFAULT_LAYOUT = TableLayout()


def authority_property(authority: str | None, properties: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the property in which a catalog stores a table's version authority; empty if it isn't given.

    Args:
        authority: ``storage`` or ``catalog``; None leaves it to the namespace.
        properties: the other properties of the table.

    Raises:
        InvalidInputError: (13) it is anything else, or the properties have it too.
    """
    if authority is None:
        return {}
    from airflow_provider_lancens.namespace.table_properties import MANAGED_BY

    check_choice("version_authority", authority, tuple(VERSION_AUTHORITIES))
    if MANAGED_BY in (properties or {}):
        _refuse(f"version_authority: not allowed with properties[{MANAGED_BY!r}], which is the same")
    return {MANAGED_BY: VERSION_AUTHORITIES[authority]}


def layout_property(layout: TableLayout | Mapping[str, Any] | None) -> dict[str, str]:
    """Return the property by which a catalog keeps a layout; empty without one.

    Args:
        layout: the layout, or a mapping of its fields.

    Raises:
        InvalidInputError: (13) a field of the layout is unknown or invalid.
    """
    from airflow_provider_lancens.namespace.table_properties import LAYOUT

    if layout is None:
        return {}
    try:
        options = layout if isinstance(layout, TableLayout) else TableLayout(**layout)
    except (TypeError, ValueError) as error:
        _refuse(f"layout: {error}")
    return {LAYOUT: options.to_json()}


@dataclass(frozen=True, slots=True)
class WriteIdentity:
    """What identifies a write.

    Raises:
        InvalidInputError: (13) a field is invalid.
    """

    key: str | None = None
    """The idempotency key, the same for all tries of one write; None makes each call a new write."""
    fingerprint: str | None = None
    """Identifies the data written under the key; None matches any."""
    on_existing_key: OnExistingKey = "redo"
    """What to do if another execution has committed under the key, see docs/exactly-once.md."""
    execution_id: str | None = None
    """The same for all tries of an execution: a commit with it is this write's own, whatever the fingerprint.
    Without one, each call with ``redo`` or ``write_again`` is another execution."""

    def __post_init__(self) -> None:
        for name in ("key", "fingerprint", "execution_id"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                _refuse(f"{name}: expected text, or None; got {value!r}")
        if self.key is not None and not self.key.strip():
            _refuse("key: expected text that identifies this write, or None; got blank text")
        check_choice("on_existing_key", self.on_existing_key, ON_EXISTING_KEY)

    @classmethod
    def of(cls, key: str | Self | None) -> Self:
        """Return what identifies a write, given in full or by its key alone.

        Raises:
            InvalidInputError: (13) it is neither, or the key is blank.
        """
        if isinstance(key, cls):
            return key
        if key is not None and not isinstance(key, str):
            _refuse(f"key: expected text that identifies this write, a WriteIdentity or None, got {key!r}")
        return cls(key)


NEW_WRITE = WriteIdentity()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a write does to a table: append, overwrite, create or upsert.

    Raises:
        InvalidInputError: (13) a field is invalid, or contradicts another one.
    """

    MODE: ClassVar[Mode]
    _article: ClassVar[str] = "an"

    schema_mode: SchemaMode = "strict"
    """What to do if the rows have other columns than the table: refuse them (``strict``), add and widen
    columns of the table (``merge``), or let an overwrite replace the columns too (``overwrite``)."""
    stage: bool = False
    """Whether the rows are staged: readers of the newest version don't see them until they are published."""

    def __post_init__(self) -> None:
        check_choice("schema_mode", self.schema_mode, SCHEMA_MODES)
        if self.schema_mode == "overwrite":
            self._check_columns_replaced()
        check_flag("stage", self.stage)
        if self.stage and self.schema_mode == "merge":
            _refuse("stage=True contradicts schema_mode='merge', which changes the columns at once")
        self._check()

    @property
    def overwrites_all(self) -> bool:
        """Whether no row of the table stays."""
        return False

    @property
    def adds_rows(self) -> bool:
        """Whether rows of the table stay, so that the new rows must have its columns."""
        return True

    @property
    def replaces_schema(self) -> bool:
        """Whether an overwrite may replace the columns too."""
        return self.schema_mode == "overwrite"

    @property
    def conditions(self) -> dict[str, str]:
        """The given conditions of the change by argument."""
        return {}

    @classmethod
    def described(cls) -> str:
        """Return its name with an article, for messages."""
        return f"{cls._article} {cls.MODE}"

    def _check(self) -> None:
        """Check the fields of the subclass."""

    def _check_columns_replaced(self) -> None:
        """Refuse ``schema_mode="overwrite"`` unless all rows are replaced."""
        _refuse(
            f"schema_mode: expected strict or merge for {self.described()}; only an overwrite can "
            "replace columns"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(Change):
    """Add rows; the first write creates the dataset."""

    MODE = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(Change):
    """Write the first version, and fail if there is one."""

    MODE = "create"
    _article = "a"

    @property
    def adds_rows(self) -> bool:
        """See `Change.adds_rows`."""
        return False

    def _check(self) -> None:
        if self.stage:
            _refuse("stage=True for a create: the first version of a table can't be staged")
        if self.schema_mode == "merge":
            _refuse("schema_mode='merge' for a create: there are no columns yet to merge with")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite(Change):
    """Replace all rows, the rows that match a condition, or the rows with some values of new rows."""

    MODE = "overwrite"

    where: str | None = None
    """The condition on the rows to replace, which the new rows must match too; None replaces all."""
    on: Sequence[str] | None = None
    """The columns by whose values rows are replaced: the rows that have the values of a new row."""

    @property
    def overwrites_all(self) -> bool:
        """See `Change.overwrites_all`."""
        return self.where is None and self.on is None

    @property
    def adds_rows(self) -> bool:
        """See `Change.adds_rows`."""
        return not self.overwrites_all

    @property
    def conditions(self) -> dict[str, str]:
        """See `Change.conditions`."""
        return {} if self.where is None else {"where": self.where}

    def _check(self) -> None:
        if self.where is not None and (not isinstance(self.where, str) or not self.where.strip()):
            _refuse(f"where: expected a condition, or None; got {self.where!r}")
        if self.on is not None and not _is_list_of_columns(self.on):
            _refuse(f"on: expected a list of columns, or None; got {self.on!r}")
        if self.on is not None and self.where is not None:
            _refuse("on: not allowed with where, which says itself which rows are replaced")

    def _check_columns_replaced(self) -> None:
        if not self.overwrites_all:
            _refuse("schema_mode: expected strict or merge with where or on, which keep the columns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert(Change):
    """Replace the rows that have the keys of new rows, and add the other new rows."""

    MODE = "upsert"

    on: Sequence[str]
    """The key columns."""
    when_matched: WhenMatched = "update"
    """What to do with a row of the table that has the key of a new row."""
    sequence_by: str | None = None
    """The column that orders the rows of a key; None refuses two of a key."""
    delete_when: str | None = None
    """The condition on new rows whose keys are deleted; None deletes none."""
    helper_columns: Sequence[str] | None = None
    """Columns of new rows that only `delete_when` needs, and that are never written; None asks the table."""
    update_columns: Sequence[str] | None = None
    """The columns that are updated in rows that exist; None updates all."""

    @property
    def conditions(self) -> dict[str, str]:
        """See `Change.conditions`."""
        return {} if self.delete_when is None else {"delete_when": self.delete_when}

    @property
    def compares_rows(self) -> bool:
        """Whether the written rows depend on the table's rows."""
        return self.when_matched != "update" or bool(self.sequence_by or self.update_columns)

    @property
    def chooses_rows(self) -> bool:
        """Whether not all rows are written as they are."""
        return self.compares_rows or self.delete_when is not None

    def _check(self) -> None:
        if not _is_list_of_columns(self.on):
            _refuse(f"on: expected a list of key columns, got {self.on!r}")
        check_choice("when_matched", self.when_matched, WHEN_MATCHED)
        if self.sequence_by is not None and (
            not isinstance(self.sequence_by, str) or not self.sequence_by.strip()
        ):
            _refuse(f"sequence_by: expected the name of a column, or None; got {self.sequence_by!r}")
        condition, columns = self.delete_when, self.update_columns
        if condition is not None and (not isinstance(condition, str) or not condition.strip()):
            _refuse(f"delete_when: expected a condition, or None; got {condition!r}")
        if self.when_matched == "keep" and (condition is not None or columns is not None):
            _refuse("when_matched='keep' contradicts delete_when and update_columns, which change rows")
        if self.stage and condition is not None:
            _refuse("stage=True contradicts delete_when: the keys to delete aren't staged")
        self._check_columns(columns)

    def _check_columns(self, columns: Sequence[str] | None) -> None:
        if columns is not None and not _is_list_of_columns(columns):
            _refuse(f"update_columns: expected a list of columns, or None; got {columns!r}")
        self._check_helpers(self.helper_columns)
        if keys := sorted({*self.on} & {*(columns or ())}):
            _refuse(f"update_columns: {keys[0]!r} is a key column, by which rows are matched")

    def _check_helpers(self, helpers: object) -> None:
        if helpers is not None and not _is_list_of_columns(helpers, at_least=0):
            _refuse(f"helper_columns: expected a list of columns, or None; got {helpers!r}")
        if helpers is not None and self.delete_when is None:
            _refuse(f"helper_columns: expected a list of columns with delete_when, or None; got {helpers!r}")
        written = {*self.on, *(self.update_columns or ())}
        if both := sorted(written & {*(self.helper_columns or ())}):
            _refuse(f"helper_columns: {both[0]!r} is a key column or one of update_columns, and is written")


CHANGES: Mapping[str, type[Change]] = {kind.MODE: kind for kind in (Append, Overwrite, Create, Upsert)}
"""The kinds of changes by mode."""

_NOT_GIVEN = {
    item.name: item.default
    for kind in CHANGES.values()
    for item in fields(kind)
    if item.default is not MISSING
}
"""The defaults of their fields."""


def change_of(mode: Mode, **arguments: Any) -> Change:
    """Return the change that a mode and the arguments of all modes describe.

    Args:
        mode: ``append``, ``overwrite``, ``create`` or ``upsert``.
        arguments: fields of changes by name; a field that the mode doesn't have must be at its default.

    Raises:
        InvalidInputError: (13) an argument is invalid, or doesn't belong to the mode.
    """
    check_choice("mode", mode, MODES)
    kind = CHANGES[mode]
    given = {name: value for name, value in arguments.items() if value != _NOT_GIVEN.get(name)}
    for name, value in given.items():
        kinds = [kind for kind in CHANGES.values() if name in _fields_of(kind)]
        if kind not in kinds:
            allowed = " and ".join(kind.described() for kind in kinds)
            _refuse(f"{name}: not allowed for {kind.described()}, only for {allowed}; got {value!r}")
    if kind is Upsert:
        given.setdefault("on", None)
    return kind(**given)


def _fields_of(kind: type[Change]) -> set[str]:
    return {item.name for item in fields(kind)}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write: its change, its identity, and the layout of a new dataset."""

    change: Change = field(default_factory=Append)
    identity: WriteIdentity = NEW_WRITE
    options: TableLayout = DEFAULT_LAYOUT
    """The layout of a new dataset; what isn't given is as declared."""
    digest_rows: bool = False
    """Whether the commit's fingerprint is the digest of its rows, which is known once they are written."""

    @property
    def upsert(self) -> Upsert | None:
        """The change, if it is an upsert."""
        return self.change if isinstance(self.change, Upsert) else None

    @property
    def on(self) -> Sequence[str]:
        """The columns by whose values rows of the table are replaced; empty if none are."""
        return (self.change.on or ()) if isinstance(self.change, Upsert | Overwrite) else ()

    @property
    def where(self) -> str | None:
        """The condition on the rows that an overwrite replaces; None if it replaces all, or isn't one."""
        return self.change.where if isinstance(self.change, Overwrite) else None

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Return the request that `as_dict` described."""
        return cls(
            CHANGES[values["mode"]](**values["change"]),
            WriteIdentity(**values["identity"]),
            TableLayout(**values["options"]),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the change, the identity and the layout as plain JSON values."""
        return {
            "mode": self.change.MODE,
            "change": asdict(self.change),
            "identity": asdict(self.identity),
            "options": asdict(self.options),
        }


def _refuse(message: str) -> NoReturn:
    from lance_namespace.errors import InvalidInputError  # takes a second: only where it is raised

    raise InvalidInputError(message)


DEFAULT_BATCH_ROWS = 1024
"""Rows of a batch of a computed column."""


def check_sizes(batch_rows: object, commit_every: object, max_tasks: object) -> None:
    """Check the sizes of the batches and steps of a computed column.

    Raises:
        ValueError: one isn't a positive number; the message names it.
    """
    check_positive("batch_rows", batch_rows)
    for name, value in (("commit_every", commit_every), ("max_tasks", max_tasks)):
        if value is not None:
            check_positive(name, value)
