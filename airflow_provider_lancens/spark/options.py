"""Request and options of a write. Plain data: imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, NoReturn, get_args

Mode = Literal["append", "overwrite", "create", "upsert"]
MODES: tuple[str, ...] = get_args(Mode)

WhenMatched = Literal["update", "keep"]
WHEN_MATCHED: tuple[str, ...] = get_args(WhenMatched)

OnExistingKey = Literal["skip", "replace_if_changed", "replace", "write_again"]
ON_EXISTING_KEY: tuple[str, ...] = get_args(OnExistingKey)

SchemaMode = Literal["strict", "merge", "overwrite"]
SCHEMA_MODES: tuple[str, ...] = get_args(SchemaMode)

DEFAULT_ROWS_PER_FILE = 1024 * 1024
"""Lance's default."""

MILLISECOND = timedelta(milliseconds=1)
LONGEST_EXPIRY = timedelta(days=36_500)
"""The shortest and the longest time after which a bookmark may expire."""


def is_whole_number(value: object, *, at_least: int) -> bool:
    """Return whether a value is an integer, not a bool, of at least `at_least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


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


def _check_positive(name: str, value: object) -> None:
    if not is_whole_number(value, at_least=1):
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Storage layout of a dataset.

    Raises:
        TypeError, ValueError: an option is invalid; the message names it.
    """

    max_rows_per_file: int = DEFAULT_ROWS_PER_FILE
    """Rows after which a task starts the next data file."""
    data_storage_version: str | None = None
    """Lance's file format for a new dataset, such as ``2.1``; None is Lance's default."""
    enable_stable_row_ids: bool = False
    """Whether a new dataset's row ids survive compaction."""
    vector_columns: Mapping[str, int] = field(default_factory=dict)
    """Array columns that a new dataset stores as fixed-size lists, with their dimension."""
    blob_columns: Sequence[str] = field(default_factory=list)
    """Columns of large values, or of references to files, that a new dataset stores as blobs."""

    def __post_init__(self) -> None:
        _check_positive("max_rows_per_file", self.max_rows_per_file)
        if not isinstance(self.vector_columns, Mapping):
            raise TypeError(
                f"vector_columns: expected a mapping of columns to dimensions, got {self.vector_columns!r}"
            )
        for column, dimension in self.vector_columns.items():
            _check_positive(f"vector_columns[{column!r}]", dimension)
        names = self.blob_columns
        if isinstance(names, str) or not all(isinstance(one, str) and one for one in names):
            raise TypeError(f"blob_columns: expected a list of columns, got {names!r}")


DEFAULT_LAYOUT = WriteOptions()


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """How to write some rows, and what identifies the write: made where it is requested, and passed down.

    Raises:
        InvalidInputError: (13) an argument is invalid, or doesn't go with another one.
    """

    mode: Mode = "append"
    idempotency_key: str | None = None
    """The same for all tries of one write; None makes each a new one."""
    fingerprint: str | None = None
    """Identifies the data written under the key; None matches any."""
    on_existing_key: OnExistingKey = "skip"
    """What to do if the key was committed before."""
    on: Sequence[str] | None = None
    """The key columns of an upsert."""
    options: WriteOptions = DEFAULT_LAYOUT
    execution_id: str | None = None
    """The same for all tries of an execution: a commit with it is this write's own, whatever the fingerprint.
    Without one, each call with ``replace`` or ``write_again`` is another repetition."""
    schema_mode: SchemaMode = "strict"
    """What to do if the rows have other columns than the table: refuse them (``strict``), add and widen
    columns of the table (``merge``), or let an overwrite replace the columns too (``overwrite``)."""
    replace_where: str | None = None
    """The condition on the rows that an overwrite replaces; None replaces all."""
    when_matched: WhenMatched = "update"
    """What an upsert does with a row of the table that has the key of a new one."""
    sequence_by: str | None = None
    """The column by which an upsert orders the rows of a key; None refuses two of a key."""
    delete_when: str | None = None
    """The condition on new rows whose keys an upsert deletes; None deletes none."""
    helper_columns: Sequence[str] | None = None
    """Columns of new rows that only `delete_when` needs, and that are never written; None asks the table."""
    update_columns: Sequence[str] | None = None
    """The columns that an upsert updates in rows that exist; None updates all."""
    publish: bool = True
    """Whether readers of the newest version see the rows; else they are staged."""
    digest_rows: bool = False
    """Whether the commit's fingerprint is the digest of its rows, which is known once they are written."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            _refuse(f"mode: expected one of {', '.join(MODES)}, got {self.mode!r}")
        if self.idempotency_key is not None and not self.idempotency_key.strip():
            _refuse("idempotency_key: expected text that identifies this write, or None; got blank text")
        if self.on_existing_key not in ON_EXISTING_KEY:
            choices = ", ".join(ON_EXISTING_KEY)
            _refuse(f"on_existing_key: expected one of {choices}, got {self.on_existing_key!r}")
        if isinstance(self.on, str) or (self.mode == "upsert") != bool(self.on):
            _refuse(f"on: expected a list of key columns for mode 'upsert' alone, got {self.on!r}")
        if self.schema_mode != "strict":
            self._check_schema_mode()
        changed = (self.replace_where, self.sequence_by, self.delete_when, self.update_columns)
        given = any(one is not None for one in (*changed, self.helper_columns))
        if given or (self.when_matched, self.publish) != ("update", True):
            self._check_effect()
        if self.mode == "upsert" and "replace" in self.on_existing_key:
            _refuse(
                f"on_existing_key={self.on_existing_key!r}: not supported for mode 'upsert', since the rows "
                "that it replaced no longer exist; upsert corrected rows with 'write_again'"
            )

    @property
    def compares_rows(self) -> bool:
        """Whether it depends on the table's rows what is written."""
        return self.when_matched != "update" or bool(self.sequence_by or self.update_columns)

    @property
    def chooses_rows(self) -> bool:
        """Whether not all rows are written as they are."""
        given = (self.sequence_by, self.delete_when, self.update_columns)
        return self.when_matched != "update" or any(one is not None for one in given)

    @property
    def overwrites_all(self) -> bool:
        """Whether no row of the table stays."""
        return self.mode == "overwrite" and self.replace_where is None

    @property
    def replaces_schema(self) -> bool:
        """Whether an overwrite may replace the columns too."""
        return self.schema_mode == "overwrite"

    def _check_schema_mode(self) -> None:
        if self.schema_mode not in SCHEMA_MODES:
            _refuse(f"schema_mode: expected one of {', '.join(SCHEMA_MODES)}, got {self.schema_mode!r}")
        if self.replaces_schema and self.mode != "overwrite":
            _refuse(
                f"schema_mode: expected strict or merge for mode {self.mode!r}; only an overwrite can "
                "replace columns"
            )
        if self.schema_mode == "merge" and self.mode == "create":
            _refuse("schema_mode='merge' for mode 'create': there are no columns yet to merge with")

    def _check_effect(self) -> None:
        if self.publish is not True:
            self._check_staged()
        if self.when_matched not in WHEN_MATCHED:
            _refuse(f"when_matched: expected one of {', '.join(WHEN_MATCHED)}, got {self.when_matched!r}")
        if self.sequence_by is not None and not str(self.sequence_by).strip():
            _refuse("sequence_by: expected the name of a column, or None; got blank text")
        if self.chooses_rows and self.mode != "upsert":
            names = "when_matched, sequence_by, delete_when, update_columns"
            _refuse(f"{names}: allowed only for mode 'upsert', got mode {self.mode!r}")
        self._check_changed_rows()
        if self.replace_where is not None:
            self._check_replace_where(self.replace_where)

    def _check_changed_rows(self) -> None:
        condition, columns = self.delete_when, self.update_columns
        if condition is not None and (not isinstance(condition, str) or not condition.strip()):
            _refuse(f"delete_when: expected a condition, or None; got {condition!r}")
        if isinstance(columns, str) or (columns is not None and not list(columns)):
            _refuse(f"update_columns: expected a list of columns, or None; got {columns!r}")
        helpers = self.helper_columns
        if isinstance(helpers, str) or (helpers is not None and condition is None):
            _refuse(f"helper_columns: expected a list of columns with delete_when, or None; got {helpers!r}")
        if written := sorted({*(self.on or ()), *(columns or ())} & {*(helpers or ())}):
            _refuse(
                f"helper_columns: {written[0]!r} is a key column or one of update_columns, and is written"
            )
        keys = sorted({*(self.on or ())} & {*(columns or ())})
        if keys:
            _refuse(f"update_columns: {keys[0]!r} is a key column, by which rows are matched")
        if self.when_matched == "keep" and (condition is not None or columns is not None):
            _refuse("when_matched='keep' contradicts delete_when and update_columns, which change rows")

    def _check_staged(self) -> None:
        if self.publish is not False:
            _refuse(f"publish: expected True or False, got {self.publish!r}")
        if self.mode == "create":
            _refuse("publish=False for mode 'create': the first version of a table can't be staged")
        if self.schema_mode == "merge":
            _refuse("publish=False contradicts schema_mode='merge', which changes the columns at once")
        if self.on_existing_key != "skip":
            _refuse(f"publish=False contradicts on_existing_key={self.on_existing_key!r}; allowed: 'skip'")
        if self.delete_when is not None:
            _refuse("publish=False contradicts delete_when: the keys to delete aren't staged")

    def _check_replace_where(self, condition: object) -> None:
        if not isinstance(condition, str) or not condition.strip():
            _refuse(f"replace_where: expected a condition, or None; got {condition!r}")
        if self.mode != "overwrite":
            _refuse(f"replace_where: expected None for mode {self.mode!r}; it limits an overwrite")
        if self.replaces_schema:
            _refuse("schema_mode: expected strict or merge with replace_where, which keeps the columns")


def _refuse(message: str) -> NoReturn:
    from lance_namespace.errors import InvalidInputError  # takes a second: only where it is raised

    raise InvalidInputError(message)
