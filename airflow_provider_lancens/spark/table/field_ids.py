"""Lance's ids of columns and nested fields, by which a data file names its columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def field_ids(fields: Iterable[Any]) -> set[int]:
    """Return the ids of these fields of a Lance schema, and of all fields in them."""
    return {number for one in fields for number in (one.id(), *field_ids(one.children()))}


def described_fields(fields: Iterable[Any]) -> Mapping[int, str]:
    """Return the path and type of each of these fields of a Lance schema and of all fields in them, by id."""
    return dict(_described(fields, ()))


def _described(fields: Iterable[Any], path: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    for one in fields:
        here, children = (*path, one.name()), list(one.children())
        # The types of nested fields are described with them.
        yield one.id(), f"{here}: {'nested' if children else one.to_arrow().type}"
        yield from _described(children, here)
