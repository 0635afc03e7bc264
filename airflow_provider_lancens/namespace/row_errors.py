"""Values of rows that can't be stored, found by the number of their row and the name of their column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from airflow_provider_lancens.namespace.arrow_memory import copied


class RowError(ValueError):
    """A value of a row can't be stored."""

    def __init__(self, row: int, column: str, reason: str) -> None:
        super().__init__(f"row {row + 1}, column {column}: {reason}")
        self.row, self.column, self.reason = row, column, reason

    def at(self, start: int) -> RowError:
        """Return the same error of rows that begin at this number."""
        return RowError(start + self.row, self.column, self.reason)


@contextmanager
def rows_from(start: int) -> Iterator[None]:
    """Count the rows of a batch from its first one's number."""
    try:
        yield
    except RowError as error:
        raise error.at(start) from None


def first_row(column: pa.Array, fails: Callable[[pa.Array], bool]) -> int:
    """Return the first row of a column with which a check fails, which fails for the whole column."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if fails(column.slice(low, middle - low)):
            high = middle
        else:
            low = middle
    return low


def check_text(column: pa.Array, name: str) -> None:
    """Check that all text in a column is UTF-8, which neither Spark nor Lance does.

    Args:
        column: the values.
        name: the column's name, for the message.

    Raises:
        RowError: some text, also inside another value, isn't.
    """

    def fails(part: pa.Array) -> bool:
        if pa.types.is_dictionary(part.type):
            part = part.dictionary_decode()
        try:
            copied(part).validate(full=True)  # copied, since a slice would also validate values of other rows
        except pa.ArrowInvalid:
            return True
        return False

    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        row = first_row(column, fails)
        raise RowError(
            row,
            name,
            f"text that isn't UTF-8 ({error}); decode it with its own encoding, such as decode(value, "
            "'ISO-8859-1')",
        ) from error


def contains_text(arrow: pa.DataType) -> bool:
    """Return whether values of a type are text, or have some inside."""
    if isinstance(arrow, pa.BaseExtensionType):
        arrow = arrow.storage_type
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return True
    return any(contains_text(arrow.field(i).type) for i in range(arrow.num_fields))
