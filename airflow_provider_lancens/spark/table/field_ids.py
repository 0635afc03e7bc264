"""Lance's ids of columns and nested fields, by which a data file names its columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple


def field_ids(fields: Iterable[Any]) -> set[int]:
    """Return the ids of these fields of a Lance schema, and of all fields in them."""
    return {number for one in fields for number in (one.id(), *field_ids(one.children()))}


class FieldDescription(NamedTuple):
    """What a field id stands for."""

    path: tuple[str, ...]
    """The names from the column to the field."""
    type: str
    """That of a field without nested ones, which are described themselves."""


def described_fields(fields: Iterable[Any]) -> Mapping[int, FieldDescription]:
    """Describe each of these fields of a Lance schema, and all fields in them, by id."""
    return dict(_described(fields, ()))


def _described(fields: Iterable[Any], path: tuple[str, ...]) -> Iterator[tuple[int, FieldDescription]]:
    for one in fields:
        here, children = (*path, one.name()), list(one.children())
        yield one.id(), FieldDescription(here, "nested" if children else str(one.to_arrow().type))
        yield from _described(children, here)
