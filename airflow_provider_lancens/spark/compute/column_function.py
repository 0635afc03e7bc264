"""The user's function: pickled by the driver, loaded once in each Python worker, its results checked.

What it raises is returned as a value and not raised on the executor: Spark would run the task again, although
the function would most likely fail in the same way, after the same time.
"""

from __future__ import annotations

import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.row_errors import RowError, check_text, contains_text

Function = Callable[..., Any]
"""``function(batch)``, or ``function(batch, made)`` with what `setup` has made in the same worker."""


class ColumnFunctionError(RuntimeError):
    """The user's function raised an exception; the message names it, the column and the fragment."""


class InvalidResultError(ValueError):
    """The function returned something that isn't a value for each row; raised and caught on an executor."""


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """A function of record batches that returns the values of one column. Picklable."""

    column: str
    """The name of the column."""
    pickled: bytes = field(repr=False)
    """The function and its setup, or None."""

    @classmethod
    def of(cls, column: str, function: Function | str, setup: Function | str | None) -> ColumnFunction:
        """Resolve a function and its setup on the driver, and pickle them.

        Raises:
            InvalidInputError: (13) one of them can't be called, imported or pickled.
        """
        made = resolved(function, "function")
        prepared = None if setup is None else resolved(setup, "setup")
        return cls(column, _pickled(made, prepared))

    def values(self, batch: pa.RecordBatch, expected: pa.DataType | None) -> pa.Array:
        """Compute the values of a batch, on an executor.

        Args:
            batch: the rows.
            expected: the column's type; None accepts any.

        Raises:
            InvalidResultError: the result isn't a value of this type for each row.
        """
        found = self._array(_loaded(self.pickled)(batch))
        if len(found) != batch.num_rows:
            raise InvalidResultError(f"returned {len(found)} values for a batch of {batch.num_rows} rows")
        if contains_text(found.type):
            self._check_text(found)
        return found if expected is None else _fitting(found, expected)

    def _check_text(self, found: pa.Array) -> None:
        try:
            check_text(found, self.column)
        except RowError as error:
            raise InvalidResultError(f"returned {error.reason}") from error

    def _array(self, result: Any) -> pa.Array:
        if isinstance(result, pa.RecordBatch | pa.Table):
            names = result.column_names
            if self.column not in names and len(names) != 1:
                raise InvalidResultError(f"returned the columns {names}, but not {self.column!r}")
            result = result.column(self.column if self.column in names else 0)
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array):
            raise InvalidResultError(
                f"returned a value of type {type(result).__name__}; allowed: a pyarrow.Array, or a "
                f"pyarrow.RecordBatch with the column {self.column!r}"
            )
        return result.storage if isinstance(result, pa.ExtensionArray) else result


def resolved(function: Function | str, argument: str) -> Function:
    """Return a function that is given by itself, or by its path such as ``module.function``.

    Raises:
        InvalidInputError: (13) there is none.
    """
    if isinstance(function, str):
        module, _, name = function.rpartition(".")
        try:
            function = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise spec_errors.InvalidInputError(
                f"{argument}: expected a function or its path such as 'module.function', got "
                f"{function!r}: {error}"
            ) from error
    if not callable(function):
        raise spec_errors.InvalidInputError(
            f"{argument}: expected a function, got a {type(function).__name__}"
        )
    return function


@lru_cache(maxsize=1)  # a worker that is used again shouldn't keep the models of earlier runs
def _loaded(pickled: bytes) -> Callable[[pa.RecordBatch], Any]:
    function, setup = pickle.loads(pickled)  # noqa: S301 from our own driver
    if setup is None:
        return function  # type: ignore[no-any-return]
    made = setup()
    return lambda batch: function(batch, made)


def _pickled(function: Function, setup: Function | None) -> bytes:
    from pyspark import cloudpickle

    with _modules_by_value(function, setup):
        try:
            return cloudpickle.dumps((function, setup))  # type: ignore[no-any-return,no-untyped-call]
        except Exception as error:  # of any type: objects raise what they like
            raise spec_errors.InvalidInputError(
                f"function, setup: cannot be pickled for Spark's executors; create what can't be pickled, "
                f"such as a model, in setup: {type(error).__name__}: {error}"
            ) from error


@contextmanager
def _modules_by_value(*functions: Function | None) -> Iterator[None]:
    """Pickle functions of modules that executors can't import, such as a DAG file, with their code."""
    from pyspark import cloudpickle

    names = {getattr(function, "__module__", None) or "" for function in functions}
    modules = [sys.modules[name] for name in names if name in sys.modules and not _is_installed(name)]
    added = [one for one in modules if one.__name__ not in cloudpickle.list_registry_pickle_by_value()]  # type: ignore[no-untyped-call]
    for module in added:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _is_installed(name: str) -> bool:
    file = getattr(sys.modules[name], "__file__", None)
    if file is None:  # built in, or __main__ of an interactive session, which is pickled by value anyway
        return True
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).is_relative_to(folder) for folder in folders)


def _fitting(found: pa.Array, expected: pa.DataType) -> pa.Array:
    if found.type == expected:
        return found
    if not _same_kind(found.type, expected):
        raise InvalidResultError(f"returned values of type {found.type}, but the column is {expected}")
    try:
        return found.cast(expected)
    except pa.ArrowException as error:
        raise InvalidResultError(
            f"returned values of type {found.type} that don't fit the column's type {expected}: {error}"
        ) from error


def _same_kind(found: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether values differ only in their width, as Python's numbers and lists do in Arrow."""
    if _is_list(found) and _is_list(expected):
        return _same_kind(found.value_type, expected.value_type)
    # An array of nulls alone has no other type.
    return (
        found == expected
        or pa.types.is_null(found)
        or any(all(map(kind, (found, expected))) for kind in _KINDS)
    )


def _is_list(arrow: pa.DataType) -> bool:
    return any(
        kind(arrow) for kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def _is_text(arrow: pa.DataType) -> bool:
    return arrow in (pa.string(), pa.large_string())


def _is_bytes(arrow: pa.DataType) -> bool:
    return arrow in (pa.binary(), pa.large_binary())


_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_timestamp,
    _is_text,
    _is_bytes,
)
