"""Whether columns can be dropped: Lance reads no fragment that is left without any data file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors

if TYPE_CHECKING:
    from lance import LanceDataset


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
