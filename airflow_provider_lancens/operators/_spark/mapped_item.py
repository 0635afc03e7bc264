"""Item of a mapped task, which identifies it in its default key however the list around the item changes.

The map index is a position: an item put in front of a list moves all others by one. So the key has a digest
of the item instead, before templates in it are rendered.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, AirflowSkipException
from airflow_provider_lancens.hooks.mapped_tasks import expand_input, items_of, map_index
from airflow_provider_lancens.spark.results import RestoreResult, StreamResult

if TYPE_CHECKING:
    from airflow.sdk import Context

_DIGITS = 16
_RESULT = frozenset({"table", "version"})
_OF_A_RESULT = frozenset(
    {
        *(item.name for kind in (RestoreResult, StreamResult) for item in fields(kind)),
        "location",
        "tag",
        "tables",
    }
)
"""Keys of the XComs of this provider's sensors and operators that have a table and a version."""


def mapped_item(context: Context) -> str | None:
    """Return a digest of what a mapped task, or its mapped task group, was given; None if it isn't mapped.

    Equal items have a number among them: the second is ``<digest>#2``. The XCom of a sensor or an ingestion
    counts by its table alone: its version is in the write's fingerprint, so that another version of the same
    table is reported rather than written as another item.

    Args:
        context: the running task's context.

    Raises:
        AirflowFailException: the item has a value that isn't the same text in every process.
        UnknownMappedItemError: the context doesn't have what the task is mapped over.
    """
    index = map_index(context)
    if index is None:
        return None
    try:
        items = _items(context, index)
    except _UnknownItemError as error:
        raise _refusal(str(error)) from None
    *others, own = [hashlib.sha256(text.encode()).hexdigest()[:_DIGITS] for text in items]
    number = others.count(own) + 1
    return own if number == 1 else f"{own}#{number}"


class UnknownMappedItemError(AirflowFailException):
    """The context of a mapped task doesn't have what the task is mapped over."""


class _UnknownItemError(Exception):
    """The item has no text that identifies it; the message says why."""


@dataclass(frozen=True, slots=True)
class _FailedItem:
    """An item that couldn't be read, or for which a function of ``.map`` raised an error."""

    error: Exception

    @property
    def is_final(self) -> bool:
        """Whether its own task is skipped or fails in any case, so that the others don't depend on it."""
        return isinstance(self.error, AirflowSkipException | AirflowFailException)


def _refusal(reason: str, kind: type[AirflowFailException] = AirflowFailException) -> AirflowFailException:
    return kind(
        f"key: a mapped task has no default if {reason}; set it, such as "
        "'{{ task.op_kwargs.path }}' or another template that identifies the item"
    )


def _items(context: Context, index: int) -> list[str]:
    """Return the items up to the item with this index, as canonical text."""
    value = getattr(expand_input(context.get("task")), "value", None)
    if isinstance(value, Mapping):  # expand(a=..., b=...): the product of the lists
        lists = {name: _listed(values, context) for name, values in value.items()}
        product = itertools.islice(itertools.product(*lists.values()), index + 1)
        found: list[Any] = [dict(zip(lists, values, strict=True)) for values in product]
    elif value is not None:  # expand_kwargs([...])
        found = [_resolved(item, context) for item in itertools.islice(_listed(value, context), index + 1)]
    else:
        found = []
    if len(found) != index + 1:
        raise _refusal("Airflow doesn't tell what it was given", UnknownMappedItemError)
    for item in reversed(found):  # the task's own item first
        if (failed := _failure(item)) is not None and (item is found[-1] or not failed.is_final):
            raise failed.error  # once readable, it may equal a later item, and change that one's number
    return [json.dumps(_plain(item), sort_keys=True) for item in found if _failure(item) is None]


def _failure(item: Any) -> _FailedItem | None:
    values = item.values() if isinstance(item, Mapping) else [item]
    return next((element for element in values if isinstance(element, _FailedItem)), None)


def _resolved(value: Any, context: Context) -> Any:
    return value.resolve(context) if hasattr(value, "resolve") else value


def _listed(value: Any, context: Context) -> Sequence[Any]:
    found = _resolved(value, context)
    if isinstance(found, Mapping):
        return list(found.items())
    return items_of(found, _at)


def _at(found: Sequence[Any], number: int) -> Any:
    try:
        return found[number]
    except Exception as error:  # noqa: BLE001 - raised by the tasks that depend on it
        return _FailedItem(error)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, the same in every process.

    Raises:
        _UnknownItemError: it isn't, such as an object whose text has its address.
    """
    if isinstance(value, Mapping):
        if _RESULT <= value.keys() <= _OF_A_RESULT:
            return {"table": _plain(value["table"])}
        return {_name(key): _plain(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted(json.dumps(_plain(element), sort_keys=True) for element in value)}
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {
            type(value).__qualname__: _plain({item.name: getattr(value, item.name) for item in fields(value)})
        }
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    for kinds, text in _TEXTS.items():
        if isinstance(value, kinds):
            return {text.__name__: text(value)}
    if callable(value) and "<" not in (name := getattr(value, "__qualname__", "<")):
        return {"function": name}
    raise _UnknownItemError(
        f"what it was given has a value of type {type(value).__name__}, which isn't the same text in "
        "every process"
    )


def _time(value: datetime | date | time) -> str:
    return value.isoformat()


def _member(value: Enum) -> str:
    return f"{type(value).__qualname__}.{value.name}"


_TEXTS: dict[Any, Any] = {
    Enum: _member,
    (datetime, date, time): _time,
    (timedelta, Decimal, UUID, PurePath): str,
    bytes: bytes.hex,
}
"""The texts of values, by their types."""


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise _UnknownItemError(f"what it was given has the name {key!r} of type {type(key).__name__}")
    return key
