"""Columns that Lance accepts and can't read back: by their names or types, or once others are dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.system_columns import SYSTEM_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

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


def check_values_left(dataset: LanceDataset, dropped: Sequence[str], table: str) -> None:
    """Check that each fragment has values of a column that stays.

    A column that is added without values has no file in the fragments that exist, and neither has a column
    that an append leaves out. If the other columns are dropped, no row of the table can be read any more.

    Args:
        dataset: the dataset, at the version before.
        dropped: the columns, nested ones by their path, such as ``a.b``.
        table: the table's name, for the message.

    Raises:
        InvalidInputError: (13) a fragment would be left without a file.
    """
    kept = set(_ids(dataset.lance_schema.fields(), frozenset(dropped)))
    emptied = [
        fragment.fragment_id
        for fragment in dataset.get_fragments()
        if kept.isdisjoint(number for file in fragment.metadata.files for number in file.fields)
    ]
    if kept and emptied:  # Lance refuses to drop all columns
        several = f"{len(emptied)} fragments, such as {emptied[0]}, have"
        raise spec_errors.InvalidInputError(
            f"table {table}: columns: {several if len(emptied) > 1 else f'fragment {emptied[0]} has'} values "
            f"of {', '.join(dropped)} alone, and Lance couldn't read the table without any; nothing was "
            "changed. Compute values of a column that stays for their rows first, or delete these rows"
        )


def _ids(fields: Iterable[Any], dropped: frozenset[str], path: str = "") -> Iterable[int]:
    for field in fields:
        here = f"{path}{field.name()}"
        if here not in dropped:
            yield field.id()
            yield from _ids(field.children(), dropped, f"{here}.")
