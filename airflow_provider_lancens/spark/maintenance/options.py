"""What maintenance is asked for, and what it answers. Plain data: imports nothing heavy."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Any

from airflow_provider_lancens.spark.options import DEFAULT_ROWS_PER_FILE

DEFAULT_AGE = timedelta(days=14)
"""Lance's own."""


class Result:
    """What an XCom can hold of a dataclass."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments a compaction rewrites, and into what.

    Raises:
        ValueError: an option is out of its range; the message names it.
    """

    target_rows_per_fragment: int = DEFAULT_ROWS_PER_FILE
    """Rows of a fragment afterwards; neighbors with fewer are brought together."""
    max_bytes_per_file: int | None = None
    """Bytes after which the next file is begun; None is Lance's default."""
    materialize_deletions_threshold: float = 0.1
    """Share of deleted rows, 0 to 1, above which a fragment is rewritten without them."""
    max_source_fragments: int | None = None
    """Most fragments that one compaction takes, oldest first; None is no limit."""
    max_source_bytes: int | None = None
    """Most bytes that one compaction takes, oldest first; None is no limit."""
    batch_size: int | None = None
    """Rows that a task holds at once; fewer for very wide rows. None is Lance's default."""
    num_threads: int | None = None
    """Threads of a task; None is as many as its machine has cores."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "materialize_deletions_threshold":
                _check_share(field.name, value)
            elif value is not None:
                check_positive(field.name, value)

    def as_lance(self) -> dict[str, Any]:
        """As `lance.optimize.Compaction` takes them."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class CompactionResult(Result):
    """What a compaction did to a table."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The version that it made; the newest one where it made none."""
    previous_version: int
    """The version whose fragments it brought together."""
    fragments_removed: int
    fragments_added: int
    files_removed: int
    """No longer part of the newest version; clean-up deletes them once no version needs them."""
    files_added: int
    tasks: int
    """Spark tasks that it took."""
    seconds: float
    """Wall-clock time of the call."""
    committed: bool
    """Whether there was anything to do."""


@dataclass(frozen=True, slots=True)
class CleanUpResult(Result):
    """What a clean-up removed from a table, or would."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The newest version, which stays."""
    versions: int
    """How many versions went."""
    files: int
    """Data, deletion and index files that went with them."""
    bytes: int
    """What all of it took on the storage."""
    tagged: int
    """Older versions that a tag keeps."""
    seconds: float
    """Wall-clock time of the call."""
    dry_run: bool
    """Whether it only looked."""


def check_positive(name: str, value: object) -> None:
    """Return where it is a count.

    Raises:
        ValueError: it isn't; the message names it.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")


def check_age(name: str, value: object) -> None:
    """Return where it is a span of time.

    Raises:
        ValueError: it isn't, or goes backward; the message names it.
    """
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise ValueError(f"{name}: expected a timedelta of at least 0, got {value!r}")


def _check_share(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{name}: expected a number from 0 to 1, got {value!r}")
