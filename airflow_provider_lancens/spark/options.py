"""What a write is asked for, and what it answers. Plain data: imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Mode = Literal["append", "overwrite", "create", "upsert"]
MODES: tuple[str, ...] = get_args(Mode)

OnChanged = Literal["fail", "replace"]
ON_CHANGED: tuple[str, ...] = get_args(OnChanged)

DEFAULT_ROWS_PER_FILE = 1024 * 1024
"""Lance's own default."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a data set is laid out.

    Raises:
        TypeError, ValueError: an option can't be what it is; the message names it.
    """

    max_rows_per_file: int = DEFAULT_ROWS_PER_FILE
    """Rows after which a task starts the next data file."""
    data_storage_version: str | None = None
    """Lance's file format for a new data set, such as ``2.1``; None is Lance's default."""
    enable_stable_row_ids: bool = False
    """Whether a new data set's row ids survive compaction."""
    vector_columns: Mapping[str, int] = field(default_factory=dict)
    """Array columns that a new data set holds as fixed-size lists, with their dimension."""

    def __post_init__(self) -> None:
        _check_positive("max_rows_per_file", self.max_rows_per_file)
        if not isinstance(self.vector_columns, Mapping):
            raise TypeError(
                f"vector_columns: expected a mapping of columns to dimensions, got {self.vector_columns!r}"
            )
        for column, dimension in self.vector_columns.items():
            _check_positive(f"vector_columns[{column!r}]", dimension)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write left in the table.

    Where an earlier run with the same idempotency key had already committed, `committed` is false
    and everything but `seconds` describes that run's commit.
    """

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The version that holds the rows: the one to read them at."""
    previous_version: int | None
    """The version that `version` follows; None where this write created the data set."""
    rows: int
    files: int
    bytes: int
    """Size of the data files."""
    seconds: float
    """Wall-clock time of this call."""
    committed: bool
    """Whether this call made a new version."""

    def as_dict(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return asdict(self)


def _check_positive(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")
