"""Check that a Lance table can have the given columns, on the driver, before any executor starts.

Lance 14 rejects other names or mishandles them: it drops what follows a NUL, cannot read back a name with a
backtick, and takes ``*`` for all columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from airflow_provider_lancens import spec_errors

RESERVED_NAMES = frozenset(
    ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]
)
"""Lance's system columns, which every table has in addition to the stored ones."""

_FORBIDDEN = {".": "a dot", "`": "a backtick", "\0": "a NUL character"}


def check_columns(table: str, schema: pa.Schema) -> None:
    """Check that Lance can store these columns and read them back.

    Args:
        table: the table's identifier, for the message.
        schema: the columns of the rows to write.

    Raises:
        InvalidInputError: (13) there is no column; a name is empty, reserved, not unique, or has a character
            that Lance can't store; or a struct has no fields. The message names each such column.
    """
    if not schema.names:
        raise spec_errors.InvalidInputError(
            f"table {table}: the rows have no columns; a table must have at least one column"
        )
    problems = [*_top_level_problems(schema.names)]
    for field in schema:
        problems += _nested_problems(field.type, field.name)
    if problems:
        raise spec_errors.InvalidInputError(
            f"table {table}: {'; '.join(problems)}. Rename or drop these columns"
        )


def _top_level_problems(names: list[str]) -> Iterator[str]:
    yield from (f"column {name!r}: two columns have this name" for name in _repeated(names))
    for name in names:
        if not name:
            yield "column '': the name is empty"
        elif name == "*" or name in RESERVED_NAMES:
            yield f"column {name!r}: Lance reserves this name"
        elif found := [shown for character, shown in _FORBIDDEN.items() if character in name]:
            yield f"column {name!r}: the name contains {' and '.join(found)}, which Lance does not allow"


def _nested_problems(arrow: pa.DataType, path: str) -> Iterator[str]:
    # Inside a struct Lance accepts any name that it doesn't have to parse, including dots and backticks.
    children = [arrow.field(index) for index in range(arrow.num_fields)]
    if pa.types.is_struct(arrow):
        if not children:
            yield f"column {path!r}: a struct must have at least one field"
        names = [child.name for child in children]
        yield from (f"column {path!r}: two fields are named {name!r}" for name in _repeated(names))
        yield from (f"column {path!r}: a NUL character in the field {n!r}" for n in names if "\0" in n)
    for child in children:
        yield from _nested_problems(child.type, f"{path}.{child.name}")


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
