"""Files as a source: their paths, format and projection. Plain data: imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args

from airflow_provider_lancens.spark.options import is_whole_number, not_a_choice

Format = Literal["parquet", "arrow", "csv", "json"]
FORMATS: tuple[str, ...] = get_args(Format)


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files that executors read directly, with a projection and a filter.

    `columns`, `filter`, `renames` and `casts` all use the column names of the files.

    Raises:
        ValueError: a field is invalid; the message names it.
    """

    format: Format
    """``parquet``, ``arrow`` (IPC files, Feather V2), ``csv``, or ``json`` (one object per line)."""
    paths: Sequence[str]
    """Files, folders (all files below, except files whose name begins with ``_`` or ``.``), or patterns with
    ``*``, ``?``, ``[…]`` and ``**``; absolute paths or URLs. A single path may be given as a string."""
    columns: Sequence[str] | None = None
    """Columns to read, in this order; None reads all."""
    filter: str | None = None
    """An SQL condition, such as ``month = 3 AND delay IS NOT NULL``."""
    renames: Mapping[str, str] = field(default_factory=dict)
    """New column names by the files' column names."""
    casts: Mapping[str, str] = field(default_factory=dict)
    """Types by the files' column names, such as ``int64``, ``decimal(10, 2)``, ``timestamp[us, UTC]``."""
    schema: Mapping[str, str] | None = None
    """Types of the columns of ``csv`` and ``json``; None infers them from the beginning of each file."""
    delimiter: str = ","
    """Separator of the values in ``csv``."""
    header: bool = True
    """Whether ``csv`` files begin with the column names; if not, `schema` names the columns."""
    partitions: Mapping[str, str] | bool = True
    """Whether names of folders below the paths, such as ``day=2026-11-01``, are columns, as in Spark. Their
    types are inferred from all values; a mapping gives the types of some."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    """Lance storage options to reach the files with; None uses the options of the table written to."""
    tasks: int | None = None
    """Maximum number of Spark tasks to read the files with; None is as many as Spark runs in parallel."""

    def __post_init__(self) -> None:
        paths = tuple(self.paths) if _is_list(self.paths) else (self.paths,)
        object.__setattr__(self, "paths", paths)
        self._check_kinds()
        self._check_values()
        if self.format not in FORMATS:
            raise ValueError(not_a_choice("format", self.format, FORMATS))
        if not self.paths or not all(isinstance(path, str) and path.strip() for path in self.paths):
            raise ValueError(f"paths: expected at least one path, and no blank path, got {self.paths!r}")
        if self.columns is not None and not (
            _is_list(self.columns) and self.columns and all(map(_is_text, self.columns))
        ):
            raise ValueError(f"columns: expected a list of names, or None for all, got {self.columns!r}")
        if self.tasks is not None and (not is_whole_number(self.tasks, at_least=1)):
            raise ValueError(f"tasks: expected a whole number of at least 1, got {self.tasks!r}")
        self._check_text()

    def _check_kinds(self) -> None:
        # Types are checked, since a rendered template is text, and any text is truthy.
        for name in ("renames", "casts", "schema"):
            value = getattr(self, name)
            if not isinstance(value, Mapping) and (value is not None or name != "schema"):
                raise ValueError(f"{name}: expected a mapping by columns' names, got {value!r}")
        if self.header not in (True, False):
            raise ValueError(f"header: expected True or False, got {self.header!r}")
        if self.partitions not in (True, False) and not isinstance(self.partitions, Mapping):
            raise ValueError(
                "partitions: expected True, False, or a mapping of types by columns' names, got "
                f"{self.partitions!r}"
            )

    def _check_values(self) -> None:
        for name in ("renames", "casts", "schema", "partitions"):
            value = getattr(self, name)
            for column, text in value.items() if isinstance(value, Mapping) else ():
                if not isinstance(column, str) or not _is_text(text):
                    raise ValueError(f"{name}: expected text by columns' names, got {column!r}: {text!r}")
        if self.filter is not None and not _is_text(self.filter):
            raise ValueError(f"filter: expected a condition, or None, got {self.filter!r}")
        options: object = self.storage_options
        if options is not None and not isinstance(options, Mapping):
            kind = type(options).__name__  # the value may be a secret
            raise ValueError(f"storage_options: expected a mapping, got a value of type {kind}")

    def _check_text(self) -> None:
        if self.schema is not None and self.format not in ("csv", "json"):
            raise ValueError(f"schema: {self.format} files contain their own; use casts to change it")
        if not self.header and (self.format != "csv" or not self.schema):
            raise ValueError("header: False is allowed only for csv, with a schema that names the columns")
        if not isinstance(self.delimiter, str) or len(self.delimiter) != 1:
            raise ValueError(f"delimiter: expected one character, got {self.delimiter!r}")

    def options_over(self, table: Mapping[str, str]) -> Mapping[str, str]:
        """Return the storage options for the files, given the table's options."""
        return table if self.storage_options is None else self.storage_options

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Return a source from a source or from the mapping of its fields.

        Raises:
            ValueError: a field is unknown, missing or invalid; the message names it.
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
        """Check that all keys are fields.

        Raises:
            ValueError: a key isn't.
        """
        names = [each.name for each in fields(cls)]
        unknown = [str(name) for name in value if name not in names]
        if unknown:
            raise ValueError(f"{', '.join(sorted(unknown))}: unknown; expected {', '.join(names)}")


def _is_text(value: object) -> bool:
    """Whether a value is text, or the output of another task, which is known when the source is rendered."""
    return isinstance(value, str) or hasattr(value, "resolve")


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | Mapping)
