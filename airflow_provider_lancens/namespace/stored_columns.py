"""Which columns Lance can't store or read back, by name and type: it accepts many of them and fails later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from airflow_provider_lancens.namespace.system_columns import SYSTEM_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

_FORBIDDEN = {".": "a dot", "`": "a backtick", "\0": "a NUL character"}


def column_problems(schema: pa.Schema) -> list[str]:
    """Return what is wrong with the columns of a table, a phrase for each problem."""
    problems = [*name_problems(schema.names)]
    for column in schema:
        problems += _nested_problems(column.type, column.name)
    return problems


def name_problems(names: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the names of a table's columns."""
    yield from (f"column {name!r}: two columns have this name" for name in _repeated(names))
    for name in names:
        if not name:
            yield "column '': the name is empty"
        elif name == "*" or name in SYSTEM_COLUMNS:
            yield f"column {name!r}: Lance reserves this name"
        elif found := [shown for character, shown in _FORBIDDEN.items() if character in name]:
            yield f"column {name!r}: the name contains {' and '.join(found)}, which Lance does not allow"


def _nested_problems(arrow: pa.DataType, path: str) -> Iterator[str]:
    # Inside a struct Lance accepts any name that it doesn't have to parse, including dots and backticks.
    import pyarrow as pa

    children = [arrow.field(index) for index in range(arrow.num_fields)]
    if pa.types.is_struct(arrow):
        if not children:
            yield f"column {path!r}: a struct must have at least one field"
        names = [child.name for child in children]
        yield from (f"column {path!r}: two fields are named {name!r}" for name in _repeated(names))
        yield from (f"column {path!r}: a NUL character in the field {n!r}" for n in names if "\0" in n)
    if pa.types.is_fixed_size_list(arrow) and not _fits_fixed_size(arrow.value_type):
        # Lance stores structs so that no other column can be read with them, and panics at text and bytes.
        yield f"column {path!r}: an array of a fixed size can't have values of type {arrow.value_type}"
    for child in children:
        yield from _nested_problems(child.type, f"{path}.{child.name}")


def _fits_fixed_size(arrow: pa.DataType) -> bool:
    import pyarrow as pa

    try:
        return bool(arrow.bit_width)
    except ValueError:  # its values have different sizes
        return bool(pa.types.is_fixed_size_list(arrow))


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
