"""Files as a source: which ones, and what to take of them. Plain data: imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args

Format = Literal["parquet", "arrow", "csv", "json"]
FORMATS: tuple[str, ...] = get_args(Format)


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files that executors read themselves, with what can be done to their rows on the way.

    `columns`, `filter`, `renames` and `casts` all name columns as the files do.

    Raises:
        ValueError: a field can't be what it is; the message names it.
    """

    format: Format
    """``parquet``, ``arrow`` (IPC files, Feather V2), ``csv``, or ``json`` (an object a line)."""
    paths: Sequence[str]
    """Files, folders (all files below, but none whose name begins with ``_`` or ``.``), or patterns with
    ``*``, ``?``, ``[…]`` and ``**``; absolute paths or URLs. One path may be given as it is."""
    columns: Sequence[str] | None = None
    """Which columns, in this order; None is all."""
    filter: str | None = None
    """A condition in SQL's words, such as ``month = 3 AND delay IS NOT NULL``."""
    renames: Mapping[str, str] = field(default_factory=dict)
    """New names by the files' names."""
    casts: Mapping[str, str] = field(default_factory=dict)
    """Types by the files' names, such as ``int64``, ``decimal(10, 2)``, ``timestamp[us, UTC]``."""
    schema: Mapping[str, str] | None = None
    """Types of the columns of ``csv`` and ``json``; None infers them from the beginning of each file."""
    delimiter: str = ","
    """Between the values of ``csv``."""
    header: bool = True
    """Whether ``csv`` begins with the columns' names; if not, `schema` names them."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    """How to reach the files, in Lance's words; None takes those of the table that is written."""
    tasks: int | None = None
    """How many Spark tasks share the files at most; None is as many as Spark runs side by side."""

    def __post_init__(self) -> None:
        paths = tuple(self.paths) if _is_list(self.paths) else (self.paths,)
        object.__setattr__(self, "paths", paths)
        self._check_kinds()
        if self.format not in FORMATS:
            raise ValueError(f"format: expected one of {', '.join(FORMATS)}, got {self.format!r}")
        if not self.paths or not all(isinstance(path, str) and path.strip() for path in self.paths):
            raise ValueError(f"paths: expected at least one path and no blank one, got {self.paths!r}")
        if self.columns is not None and not (_is_list(self.columns) and self.columns):
            raise ValueError(f"columns: expected a list of names, or None for all, got {self.columns!r}")
        if self.tasks is not None and (not isinstance(self.tasks, int) or self.tasks < 1):
            raise ValueError(f"tasks: expected a whole number of at least 1, got {self.tasks!r}")
        self._check_text()

    def _check_kinds(self) -> None:
        # What comes out of a template is text, and any text counts as true.
        for name in ("renames", "casts", "schema"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) and (value is not None or name != "schema"):
                raise ValueError(f"{name}: expected a mapping by columns' names, got {value!r}")
        if self.header not in (True, False):
            raise ValueError(f"header: expected True or False, got {self.header!r}")

    def _check_text(self) -> None:
        if self.schema is not None and self.format not in ("csv", "json"):
            raise ValueError(f"schema: {self.format} files bring their own; use casts to change it")
        if not self.header and (self.format != "csv" or not self.schema):
            raise ValueError("header: False is for csv, and takes a schema that names the columns")
        if not isinstance(self.delimiter, str) or len(self.delimiter) != 1:
            raise ValueError(f"delimiter: expected one character, got {self.delimiter!r}")

    def options_over(self, table: Mapping[str, str]) -> Mapping[str, str]:
        """The storage options that reach the files, where these reach the table."""
        return table if self.storage_options is None else self.storage_options

    @classmethod
    def parse(cls, value: Any) -> Self:
        """A source, or the mapping of its fields.

        Raises:
            ValueError: a field is unknown, missing or can't be what it is; the message names it.
        """
        if isinstance(value, cls):
            return value
        cls.check_names(value)
        missing = [name for name in ("format", "paths") if name not in value]
        if missing:
            raise ValueError(f"{', '.join(missing)}: missing")
        return cls(**value)

    @classmethod
    def check_names(cls, value: Mapping[str, Any]) -> None:
        """Return where all keys are fields.

        Raises:
            ValueError: one isn't.
        """
        names = [each.name for each in fields(cls)]
        unknown = sorted(set(value) - set(names))
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: unknown; allowed: {', '.join(names)}")


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | Mapping)
